"""From a socket to a server that answers: startup, SCRAM, and whether it is one of dpsql at all.

Law: the password itself is never sent, and no server is asked anything that has not proven to know it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum

from dpsql.base.scram import ClientChannelBinding, ScramClient, ServerNotProven
from dpsql.errors import InterfaceError, OperationalError
from dpsql.interfaces.pgwire.protocol import client_codec, extension
from dpsql.interfaces.pgwire.server.login import generate_login_nonce
from dpsql.interfaces.remote.errors import read_error
from dpsql.interfaces.remote.url import ServerAddress


class AuthenticationCode(IntEnum):
    """Of the Authentication messages that are answered: those that ask for the password itself, or for a hash of it,
    are not."""

    OK = 0
    SASL = 10
    SASL_CONTINUE = 11
    SASL_FINAL = 12


Send = Callable[[bytes], None]
Receive = Callable[[], client_codec.BackendReply]


@dataclass(frozen=True)
class LoginResult:
    """What a server told at login; `process` and `secret` are what a cancel names."""

    server: extension.ServerInfo
    process: int = 0
    secret: bytes = field(default=b"", repr=False)


def log_in_to_server(
    address: ServerAddress, channel: ClientChannelBinding, send: Send, receive: Receive
) -> LoginResult:
    """Until the server is ready for statements."""
    send(client_codec.encode_startup(_startup_parameters(address)))
    _authenticate_with_scram(address, channel, send, receive)
    status: dict[str, str] = {}
    process, secret = 0, b""
    while True:
        match receive():
            case client_codec.ParameterStatus(name, value):
                status[name] = value
            case client_codec.BackendKeyData(number, key):
                process, secret = number, key
            case client_codec.ErrorResponse(fields):
                raise read_error(fields)
            case client_codec.ReadyForQuery():
                return LoginResult(_require_dpsql_server(address, status), process, secret)
            case _:
                continue


def _startup_parameters(address: ServerAddress) -> dict[str, str]:
    identity = {"user": address.user, **({} if address.database is None else {"database": address.database})}
    fixed = {"client_encoding": "UTF8", extension.STARTUP_PARAMETER: "on"}
    return {**address.settings, **identity, **fixed}


def _authenticate_with_scram(
    address: ServerAddress, channel: ClientChannelBinding, send: Send, receive: Receive
) -> None:
    login: ScramClient | None = None
    proven = False
    while True:
        match receive():
            case client_codec.Authentication(code=AuthenticationCode.OK):
                if not proven:
                    raise ServerNotProven(
                        f"{address} did not prove that it knows the password",
                        detail="A dpsql server does: this is none, or somebody stands between.",
                    )
                return
            case client_codec.Authentication(code=AuthenticationCode.SASL) as offered if login is None:
                mechanism = channel.choose_mechanism(offered.mechanisms)
                login = ScramClient(_require_password(address), channel, mechanism, generate_login_nonce())
                send(client_codec.encode_sasl_initial(mechanism, login.first_message))
            case client_codec.Authentication(code=AuthenticationCode.SASL_CONTINUE, data=challenge) if (
                login is not None
            ):
                send(client_codec.encode_sasl_response(login.answer_challenge(challenge)))
            case client_codec.Authentication(code=AuthenticationCode.SASL_FINAL, data=last) if login is not None:
                login.check_server_signature(last)
                proven = True
            case client_codec.Authentication():
                raise ServerNotProven(
                    f"{address} asks for the password itself, which is never sent",
                    detail="A dpsql server asks by SCRAM-SHA-256 only.",
                )
            case client_codec.ErrorResponse(fields):
                raise read_error(fields)
            case client_codec.ReadyForQuery():
                raise ServerNotProven(f"{address} let nobody log in")
            case _:
                continue


def _require_password(address: ServerAddress) -> str:
    if address.password is None:
        raise InterfaceError("there is no password for the login")
    return address.password


def _require_dpsql_server(address: ServerAddress, status: dict[str, str]) -> extension.ServerInfo:
    try:
        return extension.decode_server_info(status[extension.SERVER_STATUS])
    except (KeyError, ValueError):
        version = status.get("server_version")
        what = "another server" if version is None else f"PostgreSQL {version}"
        raise OperationalError(
            f"there is no dpsql server at {address}",
            detail=f"It is {what}.",
            hint="Here a connection to `dpsql serve` is opened; the data behind it is named in its schema.",
            sqlstate="08004",
        ) from None
