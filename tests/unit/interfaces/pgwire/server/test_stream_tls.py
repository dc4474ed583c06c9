"""TLS without I/O, held against Python's own client; and the hash that logins are bound to, against OpenSSL's."""

from __future__ import annotations

import hashlib
import ssl
import subprocess
from pathlib import Path

import pytest

from dpsql.errors import OperationalError
from dpsql.interfaces.pgwire.server.stream import (
    ALPN_PROTOCOL,
    Certificate,
    TlsConnection,
    hash_certificate,
    load_certificate,
)
from tests.support.optional_dependencies import program
from tests.support.server import make_certificate


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def certificate(made: Path) -> Certificate:
    return load_certificate(made, made.with_suffix(".key"))


class Client:
    def __init__(self, made: Path, *protocols: str) -> None:
        context = ssl.create_default_context(cafile=str(made))
        if protocols:
            context.set_alpn_protocols(list(protocols))
        self.into, self.out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.into, self.out, server_hostname="localhost")

    def shake(self, server: TlsConnection, size: int = 1 << 20) -> None:
        """Both sides in turn; bytes arrive in parts of `size`."""
        for _ in range(20):
            done = True
            try:
                self.tls.do_handshake()
            except ssl.SSLWantReadError:
                done = False
            data = self.out.read()
            for start in range(0, len(data), size):
                assert server.receive_data(data[start : start + size]) == b""
            self.into.write(server.take_outgoing())
            if done and server.ready:
                return
        raise AssertionError("no handshake")


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_bytes_come_through_in_any_parts(made: Path, certificate: Certificate, size: int) -> None:
    server, client = TlsConnection(certificate), Client(made)
    client.shake(server, size)
    client.tls.write(b"hello" * 5000)
    data, found = client.out.read(), b""
    for start in range(0, len(data), size):
        found += server.receive_data(data[start : start + size])
    assert found == b"hello" * 5000
    server.send_data(b"world" * 5000)
    client.into.write(server.take_outgoing())
    answer = b""
    while len(answer) < 25000:
        answer += client.tls.read(1 << 16)
    assert answer == b"world" * 5000 and server.version in ("TLSv1.2", "TLSv1.3")


def test_the_protocol_is_agreed_on(made: Path, certificate: Certificate) -> None:
    for offered, agreed in (
        ((ALPN_PROTOCOL,), ALPN_PROTOCOL),
        (("http/1.1", ALPN_PROTOCOL), ALPN_PROTOCOL),
        ((), None),
    ):
        server = TlsConnection(certificate)
        Client(made, *offered).shake(server)
        assert server.alpn == agreed


def test_the_end_is_seen(made: Path, certificate: Certificate) -> None:
    server, client = TlsConnection(certificate), Client(made)
    client.shake(server)
    client.tls.write(b"last")
    with pytest.raises(ssl.SSLWantReadError):
        client.tls.unwrap()
    assert server.receive_data(client.out.read()) == b"last" and server.ended
    server.close()


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x00\x05hello", b"\0\0\0\x08\x04\xd2\x16"])
def test_what_is_no_tls_raises_one_error(certificate: Certificate, data: bytes) -> None:
    with pytest.raises(ssl.SSLError):
        TlsConnection(certificate).receive_data(data)


@pytest.mark.parametrize(
    ("kind", "hashed"),
    [(("rsa:2048", "-sha256"), "sha256"), (("rsa:2048", "-sha384"), "sha384"), (("rsa:2048", "-sha1"), "sha256"),
     (("rsa:2048", "-sha512"), "sha512"), (("ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-sha384"), "sha384"),
     (("ed25519",), None)],
)  # fmt: skip
def test_logins_are_bound_to_the_hash_of_the_certificates_signature(
    tmp_path: Path, kind: tuple[str, ...], hashed: str | None
) -> None:
    """RFC 5929, 4.1; a signature without a hash of its own binds nothing."""
    made = tmp_path / "one.crt"
    command = [program("openssl"), "req", "-x509", "-newkey", *kind, "-nodes", "-keyout", tmp_path / "one.key", "-out",
               made, "-days", "2", "-subj", "/CN=x"]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    der = subprocess.run([program("openssl"), "x509", "-in", made, "-outform", "DER"], check=True, capture_output=True)
    expected = None if hashed is None else hashlib.new(hashed, der.stdout).digest()
    assert hash_certificate(made.read_text()) == expected


def test_the_first_of_a_chain_is_the_servers(made: Path, tmp_path: Path) -> None:
    other = make_certificate(tmp_path, "above")
    first, second = made.read_text(), other.read_text()
    assert hash_certificate(first + second) == hash_certificate(first) != hash_certificate(second)


def test_a_certificate_that_cannot_be_used_is_reported(made: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.crt"
    broken.write_text("-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n")
    for certificate, key in ((tmp_path / "none.crt", None), (broken, None), (made, broken), (made, None)):
        with pytest.raises(OperationalError, match="cannot be used") as error:
            load_certificate(certificate, key)
        assert "PEM" in str(error.value.hint)
