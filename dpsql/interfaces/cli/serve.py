"""`dpsql serve`: schemas behind PostgreSQL's protocol, until a signal ends it."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from urllib.parse import quote

from dpsql.interfaces.dbapi.url import schema_path
from dpsql.interfaces.display.terminal import Screen, UsageError
from dpsql.interfaces.pgwire.server.connection import ServerLimits
from dpsql.interfaces.pgwire.server.databases import ServedDatabase, open_served_database
from dpsql.interfaces.pgwire.server.health_endpoint import ServerMonitor, read_token
from dpsql.interfaces.pgwire.server.logging import EventLog
from dpsql.interfaces.pgwire.server.server import Server, ServerOptions, check_options, run_server

_MAX_ANALYSTS = 10
"""Analysts whose connection strings are printed, of each database."""


def run(args: argparse.Namespace, screen: Screen) -> None:
    options = _read_options(args)
    check_options(options)
    token = read_token(Path(args.metrics_token_file)) if args.metrics_token_file else None
    if token is not None and args.metrics_port is None:
        raise UsageError("--metrics-token-file is for --metrics-port")
    log = EventLog(args.log_level, args.log_format)
    _raise_file_limit(options)
    server = Server(options, _open_databases(args.schemas), log)
    for database in server.databases:
        for reason in database.logins.without:
            log.warning("cannot log in", database=database.name, reason=reason)
    for name in server.databases.find_conspicuous_users():
        log.warning("a login tells that there is this analyst: her verifier is unlike the others", user=name)

    async def ready() -> None:
        if args.metrics_port is not None:
            listening = await ServerMonitor(server).make_endpoint(token).start(args.metrics_host, args.metrics_port)
            server.add_listener(listening)
            port = listening.sockets[0].getsockname()[1]
            screen.print(f"metrics  http://{_format_host(args.metrics_host)}:{port}/metrics")
        _print_addresses(server, screen)

    run_server(server, ready)


def _open_databases(paths: list[str]) -> list[ServedDatabase]:
    served: list[ServedDatabase] = []
    try:
        for path in paths:
            served.append(open_served_database(str(schema_path(path)), os.environ))
    except BaseException:
        for database in served:
            database.dataset.close()
        raise
    return served


def _read_options(args: argparse.Namespace) -> ServerOptions:
    if args.tls_key and not args.tls_cert:
        raise UsageError("--tls-key is the key of a certificate: name it by --tls-cert")
    return ServerOptions(
        hosts=tuple(args.host or ("127.0.0.1",)),
        port=args.port,
        folder=Path(args.socket) if args.socket else None,
        certificate=Path(args.tls_cert) if args.tls_cert else None,
        key=Path(args.tls_key) if args.tls_key else None,
        require_tls=args.require_tls,
        allow_plain=args.allow_plain,
        threads=args.threads,
        grace_seconds=args.grace,
        limits=ServerLimits(
            args.max_connections,
            args.max_user_connections,
            args.max_pending,
            args.max_address_pending,
            idle_seconds=args.idle_timeout,
        ),
    )


def _print_addresses(server: Server, screen: Screen) -> None:
    """How to connect; then the word that a program which started this one may wait for."""
    more = "?sslmode=require" if server.options.require_tls else ""
    host = _format_host(server.options.hosts[0])
    for database in server.databases:
        for user in list(database.logins.verifiers)[:_MAX_ANALYSTS]:
            screen.print(
                f"{database.name}  postgresql://{quote(user)}@{host}:{server.port}/{quote(database.name)}{more}"
            )
            if server.options.folder is not None:
                folder = quote(str(server.options.folder.absolute()), safe="")
                screen.print(
                    f"{database.name}  postgresql://{quote(user)}@{folder}:{server.port}/{quote(database.name)}"
                )
        if len(database.logins.verifiers) > _MAX_ANALYSTS:
            screen.print(f"{database.name}  and {len(database.logins.verifiers) - _MAX_ANALYSTS} more analysts")
    screen.print("ready")
    sys.stdout.flush()


def _raise_file_limit(options: ServerOptions) -> None:
    """Each connection is an open file, and so is much else."""
    if sys.platform != "win32":
        import resource

        file_count = options.limits.connections + options.limits.pending + 4 * options.threads + 256
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft < file_count:
            resource.setrlimit(resource.RLIMIT_NOFILE, (file_count if hard < 0 else min(file_count, hard), hard))


def _format_host(host: str) -> str:
    return f"[{host}]" if ":" in host else host
