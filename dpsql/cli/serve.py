"""`dpsql serve`: schemas behind PostgreSQL's protocol, until a signal ends it."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from urllib.parse import quote

from dpsql.dbapi.address import schema_path
from dpsql.display.screen import Screen, Usage
from dpsql.pgwire.databases import Served, open_served
from dpsql.pgwire.health import read_token
from dpsql.pgwire.logs import Log
from dpsql.pgwire.server import Options, Server, check, run_server
from dpsql.pgwire.visit import Bounds
from dpsql.pgwire.watching import Watching

_SHOWN = 10
"""Analysts whose connection strings are printed, of each database."""


def run(given: argparse.Namespace, screen: Screen) -> None:
    options = _options(given)
    check(options)
    token = read_token(Path(given.metrics_token_file)) if given.metrics_token_file else None
    if token is not None and given.metrics_port is None:
        raise Usage("--metrics-token-file is for --metrics-port")
    log = Log(given.log_level, given.log_format)
    _more_files(options)
    server = Server(options, _opened(given.schemas), log)
    for one in server.databases:
        for who in one.logins.without:
            log.warning("cannot log in", database=one.name, reason=who)
    for name in server.databases.conspicuous():
        log.warning("a login tells that there is this analyst: her verifier is unlike the others", user=name)

    async def ready() -> None:
        if given.metrics_port is not None:
            listening = await Watching(server).health(token).start(given.metrics_host, given.metrics_port)
            server.also_close(listening)
            port = listening.sockets[0].getsockname()[1]
            screen.print(f"metrics  http://{_host(given.metrics_host)}:{port}/metrics")
        _tell(server, screen)

    run_server(server, ready)


def _opened(paths: list[str]) -> list[Served]:
    served: list[Served] = []
    try:
        for path in paths:
            served.append(open_served(str(schema_path(path)), os.environ))
    except BaseException:
        for one in served:
            one.dataset.close()
        raise
    return served


def _options(given: argparse.Namespace) -> Options:
    if given.tls_key and not given.tls_cert:
        raise Usage("--tls-key is the key of a certificate: name it by --tls-cert")
    return Options(
        hosts=tuple(given.host or ("127.0.0.1",)),
        port=given.port,
        folder=Path(given.socket) if given.socket else None,
        certificate=Path(given.tls_cert) if given.tls_cert else None,
        key=Path(given.tls_key) if given.tls_key else None,
        require_tls=given.require_tls,
        allow_plain=given.allow_plain,
        threads=given.threads,
        grace_seconds=given.grace,
        bounds=Bounds(given.max_connections, given.max_user_connections, idle_seconds=given.idle_timeout),
    )


def _tell(server: Server, screen: Screen) -> None:
    """How to connect; then the word that a program which started this one may wait for."""
    more = "?sslmode=require" if server.options.require_tls else ""
    host = _host(server.options.hosts[0])
    for one in server.databases:
        for user in list(one.logins.known)[:_SHOWN]:
            screen.print(f"{one.name}  postgresql://{quote(user)}@{host}:{server.port}/{quote(one.name)}{more}")
            if server.options.folder is not None:
                folder = quote(str(server.options.folder.absolute()), safe="")
                screen.print(f"{one.name}  postgresql://{quote(user)}@{folder}:{server.port}/{quote(one.name)}")
        if len(one.logins.known) > _SHOWN:
            screen.print(f"{one.name}  and {len(one.logins.known) - _SHOWN} more analysts")
    screen.print("ready")
    sys.stdout.flush()


def _more_files(options: Options) -> None:
    """Each connection is an open file, and so is much else."""
    if sys.platform != "win32":
        import resource

        wanted = options.bounds.connections + options.bounds.pending + 4 * options.threads + 256
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted if hard < 0 else min(wanted, hard), hard))


def _host(host: str) -> str:
    return f"[{host}]" if ":" in host else host
