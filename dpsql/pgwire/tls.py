"""TLS between bytes of the network and bytes of the protocol, without I/O; and the server's certificate.

TLS 1.2 and later. The certificate can be changed while the server runs: who connects after `load` gets the new one.
"""

from __future__ import annotations

import hashlib
import ssl
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from dpsql.errors import OperationalError

ALPN = "postgresql"
FIRST_BYTE = 0x16
"""Of a TLS handshake: a client that begins with TLS at once sends it."""
_READ = 256 * 1024

# The hash of a certificate's signature, by its object identifier in DER (RFC 5929: MD5 and SHA-1 become SHA-256).
_HASHES = {
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
    """`end_point` is what logins are bound to; None for signatures whose hash is not known, such as Ed25519's."""

    context: ssl.SSLContext
    end_point: bytes | None


def load(certificate: Path, key: Path | None) -> Certificate:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    context.set_alpn_protocols([ALPN])
    try:
        context.load_cert_chain(certificate, key)
        text = certificate.read_text(encoding="ascii", errors="replace")
    except (OSError, ssl.SSLError) as error:
        reason = error.strerror or "it cannot be read"
        raise OperationalError(
            f'the certificate "{certificate}" cannot be used', detail=f"{reason}.".replace("..", "."),
            hint="It needs a certificate in PEM, and its key, without a password, in the same file or by --tls-key.",
        ) from None  # fmt: skip
    return Certificate(context, end_point(text))


def end_point(pem: str) -> bytes | None:
    """The hash of the first certificate, `tls-server-end-point` of RFC 5929."""
    start, end = pem.find("-----BEGIN CERTIFICATE-----"), pem.find("-----END CERTIFICATE-----")
    if start < 0 or end < start:
        return None
    der = ssl.PEM_cert_to_DER_cert(pem[start:end] + "-----END CERTIFICATE-----")
    name = _HASHES.get(_signed_by(der))
    return None if name is None else hashlib.new(name, der).digest()


def _signed_by(der: bytes) -> str:
    """The object identifier of the signature: Certificate is SEQUENCE {what is signed, SEQUENCE {identifier …}, …}."""
    inside, _ = _content(der, 0)
    _, after = _content(der, inside)
    algorithm, _ = _content(der, after)
    identifier, end = _content(der, algorithm)
    return der[identifier:end].hex()


def _content(der: bytes, at: int) -> tuple[int, int]:
    """Where the content of the element at `at` begins and ends."""
    size, start = der[at + 1], at + 2
    if size & 0x80:
        count = size & 0x7F
        size, start = int.from_bytes(der[start : start + count], "big"), start + count
    return start, start + size


class Tls:
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

    def receive(self, data: bytes) -> bytes:
        """Raises ssl.SSLError where the other side does not speak TLS."""
        self._in.write(data)
        if not self.ready:
            try:
                self._tls.do_handshake()
                self.ready = True
            except ssl.SSLWantReadError:
                return b""
        found = []
        try:
            while part := self._tls.read(_READ):
                found.append(part)
            self.ended = True
        except ssl.SSLWantReadError:
            pass
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            self.ended = True
        return b"".join(found)

    def send(self, data: bytes) -> None:
        self._tls.write(data)

    def close(self) -> None:
        """Say goodbye, so that nobody can cut what was sent."""
        with suppress(ssl.SSLError):
            self._tls.unwrap()

    def outgoing(self) -> bytes:
        return self._out.read()
