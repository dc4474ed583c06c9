"""TLS between bytes of the network and bytes of the protocol, without I/O; and the server's certificate.

TLS 1.2 and later. The certificate can be changed while the server runs: who connects after `load_certificate` gets the new one.
"""

from __future__ import annotations

import hashlib
import ssl
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from dpsql.errors import OperationalError

ALPN_PROTOCOL = "postgresql"
HANDSHAKE_FIRST_BYTE = 0x16
"""Of a TLS handshake: a client that begins with TLS at once sends it."""
_READ_BYTES = 256 * 1024

# The hash of a certificate's signature, by its object identifier in DER (RFC 5929: MD5 and SHA-1 become SHA-256).
_SIGNATURE_HASHES = {
    "2a864886f70d010104": "sha256",  # md5WithRSA
    "2a864886f70d010105": "sha256",  # sha1WithRSA
    "2a864886f70d01010b": "sha256",
    "2a864886f70d01010c": "sha384",
    "2a864886f70d01010d": "sha512",
    "2a8648ce3d0401": "sha256",  # ecdsa-with-SHA1
    "2a8648ce3d040302": "sha256",
    "2a8648ce3d040303": "sha384",
    "2a8648ce3d040304": "sha512",
}


@dataclass(frozen=True)
class Certificate:
    """`hash_certificate` is what logins are bound to; None for signatures whose hash is not known, such as Ed25519's."""

    context: ssl.SSLContext
    end_point: bytes | None


def load_certificate(certificate: Path, key: Path | None) -> Certificate:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    context.set_alpn_protocols([ALPN_PROTOCOL])
    try:
        context.load_cert_chain(certificate, key)
        text = certificate.read_text(encoding="ascii", errors="replace")
    except (OSError, ssl.SSLError) as error:
        reason = error.strerror or "it cannot be read"
        raise OperationalError(
            f'the certificate "{certificate}" cannot be used', detail=f"{reason}.".replace("..", "."),
            hint="It needs a certificate in PEM, and its key, without a password, in the same file or by --tls-key.",
        ) from None  # fmt: skip
    return Certificate(context, hash_certificate(text))


def hash_certificate(pem: str) -> bytes | None:
    """The hash of the first certificate, `tls-server-end-point` of RFC 5929."""
    start, end = pem.find("-----BEGIN CERTIFICATE-----"), pem.find("-----END CERTIFICATE-----")
    if start < 0 or end < start:
        return None
    der = ssl.PEM_cert_to_DER_cert(pem[start:end] + "-----END CERTIFICATE-----")
    name = _SIGNATURE_HASHES.get(_signature_algorithm(der))
    return None if name is None else hashlib.new(name, der).digest()


def _signature_algorithm(der: bytes) -> str:
    """The object identifier of the signature: Certificate is SEQUENCE {what is signed, SEQUENCE {identifier …}, …}."""
    inside, _ = _find_der_content(der, 0)
    _, after = _find_der_content(der, inside)
    algorithm, _ = _find_der_content(der, after)
    identifier, end = _find_der_content(der, algorithm)
    return der[identifier:end].hex()


def _find_der_content(der: bytes, at: int) -> tuple[int, int]:
    """Where the content of the element at `at` begins and ends."""
    size, start = der[at + 1], at + 2
    if size & 0x80:
        count = size & 0x7F
        size, start = int.from_bytes(der[start : start + count], "big"), start + count
    return start, start + size


class TlsConnection:
    """One connection's TLS. `receive` takes bytes of the network and gives those of the client; what is to be sent
    comes from `outgoing`."""

    def __init__(self, certificate: Certificate) -> None:
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = certificate.context.wrap_bio(self._in, self._out, server_side=True)
        self.end_point = certificate.end_point
        self.ready = False
        self.ended = False

    @property
    def alpn(self) -> str | None:
        return self._tls.selected_alpn_protocol()

    @property
    def version(self) -> str | None:
        return self._tls.version()

    def receive_data(self, data: bytes) -> bytes:
        """Raises ssl.SSLError where the other side does not speak TLS."""
        self._in.write(data)
        if not self.ready:
            try:
                self._tls.do_handshake()
                self.ready = True
            except ssl.SSLWantReadError:
                return b""
        parts = []
        try:
            while part := self._tls.read(_READ_BYTES):
                parts.append(part)
            self.ended = True
        except ssl.SSLWantReadError:
            pass
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            self.ended = True
        return b"".join(parts)

    def send_data(self, data: bytes) -> None:
        self._tls.write(data)

    def close(self) -> None:
        """Say goodbye, so that nobody can cut what was sent."""
        with suppress(ssl.SSLError):
            self._tls.unwrap()

    def take_outgoing(self) -> bytes:
        return self._out.read()
