"""The login of a client: TLS, startup, SCRAM.

Law: nothing is said about the databases before the login has succeeded. A wrong password, an unknown user, an unknown
database and an analyst without a password get the same error. Bytes that were sent before TLS began are never used
after it began.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import secrets
from dataclasses import dataclass

from dpsql.base import scram
from dpsql.errors import AccessDenied, Error, OperationalError
from dpsql.interfaces.pgwire.protocol import backend
from dpsql.interfaces.pgwire.protocol.framing import MessageReader, ProtocolViolation
from dpsql.interfaces.pgwire.protocol.frontend import (
    CancelRequest,
    FrontendDecoder,
    GSSENCRequest,
    Password,
    SSLRequest,
    StartupMessage,
)
from dpsql.interfaces.pgwire.server.databases import ServedDatabase, ServedDatabases
from dpsql.interfaces.pgwire.server.login_throttle import LoginThrottle
from dpsql.interfaces.pgwire.server.startup_parameters import StartupRequest, read_startup_request
from dpsql.interfaces.pgwire.server.stream import ALPN_PROTOCOL, HANDSHAKE_FIRST_BYTE, Certificate, ClientStream

# What a server draws at random and no noise: the nonces of logins, and the keys by which a statement is canceled.

NONCE_BYTES = 18
"""Bytes of a login's nonce, as PostgreSQL has."""


def generate_login_nonce() -> str:
    """Printable, and without the comma that divides SCRAM's messages."""
    return base64.b64encode(secrets.token_bytes(NONCE_BYTES)).decode("ascii")


def generate_process_id() -> int:
    """A connection's process id: a random positive 31-bit number, which does not show how many there were."""
    return secrets.randbelow((1 << 31) - 1) + 1


def generate_cancel_key() -> bytes:
    return secrets.token_bytes(4)  # protocol 3.0 has no more room


def are_equal(left: bytes, right: bytes) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest(left, right)


STARTUP_TIMEOUT_SECONDS = 10.0
"""For the first message of a client, TLS's handshake included."""
NEWEST_PROTOCOL = 3 << 16
"""Version 3.0, as PostgreSQL before its version 18."""


class LoginFailed(AccessDenied):
    default_sqlstate = "28P01"


@dataclass(frozen=True)
class LoginRules:
    """What the owner demands of connections."""

    certificate: Certificate | None = None
    require_tls: bool = False


async def negotiate_startup(
    stream: ClientStream, protocol: FrontendDecoder, rules: LoginRules
) -> StartupMessage | CancelRequest:
    """The startup message, or a cancel request; requests for encryption before it are answered here."""
    async with asyncio.timeout(STARTUP_TIMEOUT_SECONDS):
        if await stream.peek_byte() == HANDSHAKE_FIRST_BYTE:
            await _start_direct_tls(stream, rules)
        seen_requests: set[type] = set()
        while True:
            message = await _read_startup(stream, protocol)
            if isinstance(message, StartupMessage | CancelRequest):
                break
            if type(message) in seen_requests or stream.tls is not None:
                raise ProtocolViolation("encryption was asked for twice")
            seen_requests.add(type(message))
            if isinstance(message, SSLRequest) and rules.certificate is not None:
                await _upgrade_to_tls(stream, protocol, rules.certificate)
            else:
                stream.write(b"N")
    if isinstance(message, StartupMessage):
        _check_startup(message, stream, rules)
    return message


async def _read_startup(
    stream: ClientStream, protocol: FrontendDecoder
) -> StartupMessage | SSLRequest | GSSENCRequest | CancelRequest:
    while (message := protocol.next_startup()) is None:
        protocol.receive_data(await stream.read())
    return message


async def _upgrade_to_tls(stream: ClientStream, protocol: FrontendDecoder, certificate: Certificate) -> None:
    if protocol.buffered_bytes or stream.buffered_bytes:
        raise ProtocolViolation("received unencrypted data after SSL request",
                                detail="This could be someone in between.")  # fmt: skip
    stream.write(b"S")
    await stream.start_tls(certificate)


async def _start_direct_tls(stream: ClientStream, rules: LoginRules) -> None:
    """Start TLS with a client that begins with it; it must name the protocol (ALPN)."""
    if rules.certificate is None:
        raise ProtocolViolation("there is no TLS here")
    await stream.start_tls(rules.certificate)
    if stream.tls is None or stream.tls.alpn != ALPN_PROTOCOL:
        raise ProtocolViolation("TLS began without the protocol postgresql in ALPN")


def _check_startup(message: StartupMessage, stream: ClientStream, rules: LoginRules) -> None:
    if message.version[0] != 3:
        major, minor = message.version
        raise OperationalError(
            f"unsupported frontend protocol {major}.{minor}: server supports 3.0 to 3.0", sqlstate="0A000"
        )
    if rules.require_tls and stream.tls is None and not stream.is_local:
        raise AccessDenied("this server takes connections with TLS only", hint="Connect with sslmode=require.")


def encode_negotiation(message: StartupMessage, request: StartupRequest) -> bytes:
    """NegotiateProtocolVersion, for a client that asked for a newer protocol or unknown options."""
    if message.version[1] == 0 and not request.unknown:
        return b""
    return backend.negotiate_protocol_version(NEWEST_PROTOCOL, request.unknown)


async def authenticate_client(
    stream: ClientStream,
    protocol: FrontendDecoder,
    message: StartupMessage,
    databases: ServedDatabases,
    throttle: LoginThrottle,
) -> tuple[StartupRequest, ServedDatabase]:
    request = read_startup_request(message.parameters)
    stream.write(encode_negotiation(message, request))
    login = databases.find_login(request.database, request.user)
    channel = scram.ChannelBinding(stream.tls.end_point if stream.tls is not None else None)
    stream.write(backend.authentication_sasl(channel.mechanisms))
    try:
        mechanism, first = _read_sasl_initial(await _read_password_message(stream, protocol), channel)
        challenge = scram.create_challenge(
            mechanism, first, channel, login.verifier, login.is_analyst, generate_login_nonce()
        )
        stream.write(backend.authentication_sasl_continue(challenge.text.encode()))
        final = _decode_scram_text(await _read_password_message(stream, protocol))
        await _wait_for_attempt(throttle, request.user, stream.address)
        last = challenge.finish_login(final)
    except scram.ScramMessageError as error:
        raise ProtocolViolation(str(error)) from None
    except scram.WrongPassword:
        throttle.record_failure(request.user, stream.address)
        raise LoginFailed(f'password authentication failed for user "{request.user}"') from None
    throttle.record_success(request.user, stream.address)
    stream.write(backend.authentication_sasl_final(last.encode()) + backend.AUTHENTICATION_OK)
    if login.served is None:
        raise _no_database_error(request, databases)
    return request, login.served


def _no_database_error(request: StartupRequest, databases: ServedDatabases) -> Error:
    """Names databases, so it is for clients only that have proven to be an analyst of them."""
    names = [database.name for database in databases if request.user in database.logins.verifiers]
    return OperationalError(
        f'database "{request.database}" does not exist', hint=f"Databases: {', '.join(names)}.", sqlstate="3D000"
    )


async def _wait_for_attempt(throttle: LoginThrottle, user: str, address: str) -> None:
    seconds = throttle.reserve_login(user, address)
    if seconds is None:
        raise LoginFailed("too many failed logins", hint="Try again in a quarter of an hour.", sqlstate="28000")
    await asyncio.sleep(seconds)


async def _read_password_message(stream: ClientStream, protocol: FrontendDecoder) -> bytes:
    while (message := protocol.next_message()) is None:
        protocol.receive_data(await stream.read())
    if not isinstance(message, Password):
        raise ProtocolViolation("expected SASL response")
    return message.body


def _read_sasl_initial(body: bytes, channel: scram.ChannelBinding) -> tuple[str, str]:
    """SASLInitialResponse: the mechanism, and the client's first message."""
    reader = MessageReader(body)
    mechanism, data = reader.read_text(), reader.read_sized()
    reader.check_end()
    if mechanism not in channel.mechanisms or data is None:
        raise ProtocolViolation("client selected an invalid SASL authentication mechanism")
    return mechanism, _decode_scram_text(data)


def _decode_scram_text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise ProtocolViolation("malformed SCRAM message") from None
