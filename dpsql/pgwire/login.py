"""From the first byte of a client to who she is: TLS, startup, SCRAM.

Law: nothing of the databases is told before the login has succeeded, and a wrong password is told as an unknown user,
an unknown database, and an analyst without a password are. What was sent before TLS began is never obeyed inside it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from dpsql.errors import AccessDenied, Error, OperationalError
from dpsql.pgwire import replies, scram
from dpsql.pgwire.databases import Databases, Served
from dpsql.pgwire.failures import Failures
from dpsql.pgwire.frames import ProtocolViolation, Reader
from dpsql.pgwire.link import Link
from dpsql.pgwire.messages import CancelRequest, GSSENCRequest, Password, SSLRequest, StartupMessage
from dpsql.pgwire.nonces import login_nonce
from dpsql.pgwire.protocol import Protocol
from dpsql.pgwire.startup import Opening, read_opening
from dpsql.pgwire.tls import ALPN, FIRST_BYTE, Certificate

STARTUP_SECONDS = 10.0
"""For the first message of a client, TLS's handshake included."""
NEWEST = 3 << 16
"""Version 3.0, as PostgreSQL before its version 18."""


class WrongLogin(AccessDenied):
    default_sqlstate = "28P01"


@dataclass(frozen=True)
class Rules:
    """What the owner demands of connections."""

    certificate: Certificate | None = None
    require_tls: bool = False


async def start(link: Link, protocol: Protocol, rules: Rules) -> StartupMessage | CancelRequest:
    """The message that begins a connection; what may stand before it is answered."""
    async with asyncio.timeout(STARTUP_SECONDS):
        if await link.peek() == FIRST_BYTE:
            await _direct_tls(link, rules)
        asked: set[type] = set()
        while True:
            message = await _startup(link, protocol)
            if isinstance(message, StartupMessage | CancelRequest):
                break
            if type(message) in asked or link.tls is not None:
                raise ProtocolViolation("encryption was asked for twice")
            asked.add(type(message))
            if isinstance(message, SSLRequest) and rules.certificate is not None:
                await _tls(link, protocol, rules.certificate)
            else:
                link.write(b"N")
    if isinstance(message, StartupMessage):
        _check(message, link, rules)
    return message


async def _startup(link: Link, protocol: Protocol) -> StartupMessage | SSLRequest | GSSENCRequest | CancelRequest:
    while (message := protocol.next_startup()) is None:
        protocol.receive(await link.read())
    return message


async def _tls(link: Link, protocol: Protocol, certificate: Certificate) -> None:
    if protocol.waiting or link.waiting:
        raise ProtocolViolation("received unencrypted data after SSL request",
                                detail="This could be someone in between.")  # fmt: skip
    link.write(b"S")
    await link.start_tls(certificate)


async def _direct_tls(link: Link, rules: Rules) -> None:
    """Of clients that begin with TLS; they must say what they speak in it."""
    if rules.certificate is None:
        raise ProtocolViolation("there is no TLS here")
    await link.start_tls(rules.certificate)
    if link.tls is None or link.tls.alpn != ALPN:
        raise ProtocolViolation("TLS began without the protocol postgresql in ALPN")


def _check(message: StartupMessage, link: Link, rules: Rules) -> None:
    if message.version[0] != 3:
        major, minor = message.version
        raise OperationalError(
            f"unsupported frontend protocol {major}.{minor}: server supports 3.0 to 3.0", sqlstate="0A000"
        )
    if rules.require_tls and link.tls is None and not link.is_local:
        raise AccessDenied("this server takes connections with TLS only", hint="Connect with sslmode=require.")


def negotiated(message: StartupMessage, opening: Opening) -> bytes:
    """What a client is told who asked for more than there is."""
    if message.version[1] == 0 and not opening.unknown:
        return b""
    return replies.negotiate_protocol_version(NEWEST, opening.unknown)


async def log_in(
    link: Link, protocol: Protocol, message: StartupMessage, databases: Databases, failures: Failures
) -> tuple[Opening, Served]:
    opening = read_opening(message.parameters)
    link.write(negotiated(message, opening))
    login = databases.login(opening.database, opening.user)
    channel = scram.Channel(link.tls.end_point if link.tls is not None else None)
    link.write(replies.authentication_sasl(channel.mechanisms))
    try:
        mechanism, first = _first(await _password(link, protocol), channel)
        challenge = scram.challenge(mechanism, first, channel, login.verifier, login.known, login_nonce())
        link.write(replies.authentication_sasl_continue(challenge.text.encode()))
        final = _text(await _password(link, protocol))
        await _turn(failures, opening.user, link.address)
        last = challenge.finish(final)
    except scram.WrongMessage as error:
        raise ProtocolViolation(str(error)) from None
    except scram.WrongPassword:
        failures.failed(opening.user, link.address)
        raise WrongLogin(f'password authentication failed for user "{opening.user}"') from None
    failures.succeeded(opening.user, link.address)
    link.write(replies.authentication_sasl_final(last.encode()) + replies.AUTHENTICATION_OK)
    if login.served is None:
        raise _no_database(opening, databases)
    return opening, login.served


def _no_database(opening: Opening, databases: Databases) -> Error:
    """Told to whom it concerns alone: who has proven to be an analyst of these."""
    mine = [one.name for one in databases if opening.user in one.logins.known]
    return OperationalError(
        f'database "{opening.database}" does not exist', hint=f"Databases: {', '.join(mine)}.", sqlstate="3D000"
    )


async def _turn(failures: Failures, user: str, address: str) -> None:
    seconds = failures.wait(user, address)
    if seconds is None:
        raise WrongLogin("too many failed logins", hint="Try again in a quarter of an hour.", sqlstate="28000")
    await asyncio.sleep(seconds)


async def _password(link: Link, protocol: Protocol) -> bytes:
    while (message := protocol.next_message()) is None:
        protocol.receive(await link.read())
    if not isinstance(message, Password):
        raise ProtocolViolation("expected SASL response")
    return message.body


def _first(body: bytes, channel: scram.Channel) -> tuple[str, str]:
    """SASLInitialResponse: the mechanism, and the client's first message."""
    reader = Reader(body)
    mechanism, data = reader.text(), reader.sized()
    reader.end()
    if mechanism not in channel.mechanisms or data is None:
        raise ProtocolViolation("client selected an invalid SASL authentication mechanism")
    return mechanism, _text(data)


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise ProtocolViolation("malformed SCRAM message") from None
