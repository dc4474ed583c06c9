"""PostgreSQL's ODBC driver through pyodbc, as a client of the battery."""

from __future__ import annotations

import re
from typing import Any

from tests.support.optional_dependencies import missing, package
from tests.support.wire.adapters import Client, How, Rows, Told
from tests.support.wire.hospital import Place

UNICODE, ANSI = "PostgreSQL Unicode", "PostgreSQL ANSI"


def odbc_string(place: Place, driver: str = UNICODE, **options: str) -> str:
    given = {"Driver": f"{{{driver}}}", "Servername": place.host, "Port": str(place.port), "Database": place.database,
             "UID": place.user, "PWD": f"{{{place.password}}}", **options}  # fmt: skip
    return ";".join(f"{name}={value}" for name, value in given.items())


def odbc_connect(place: Place, driver: str = UNICODE, **options: str) -> Any:
    pyodbc = package("pyodbc")
    if driver not in pyodbc.drivers():
        missing("PostgreSQL's ODBC driver", "apt-get install odbc-postgresql unixodbc")
    connection = pyodbc.connect(odbc_string(place, driver, **options), autocommit=True, timeout=20)
    if driver == ANSI:  # it knows bytes only; which bytes, the client says
        for kind in (pyodbc.SQL_CHAR, pyodbc.SQL_WCHAR):
            connection.setdecoding(kind, encoding="utf-8", ctype=pyodbc.SQL_CHAR)
        connection.setencoding(encoding="utf-8", ctype=pyodbc.SQL_CHAR)
    return connection


class Odbc(Client):
    name = "odbc unicode"
    can = frozenset({"null", "several", "cancel"})
    driver = UNICODE

    def __init__(self, place: Place, how: How) -> None:
        pyodbc = package("pyodbc")
        self.broken = (pyodbc.Error,)
        options = {"PWD": f"{{{how.password}}}"} if how.password is not None else {}
        if how.database is not None:
            options["Database"] = how.database
        if how.options:
            options["pqopt"] = f"{{options='{how.options}'}}"
        if how.application:
            options["ApplicationName"] = how.application
        if how.tls:
            options["SSLmode"] = how.tls
            options["pqopt"] = f"{{sslrootcert={place.certificate}}}"
        self.db = odbc_connect(place, self.driver, **options)
        self.last: Any = None

    def rows(self, sql: str, *parameters: Any) -> Rows:
        self.last = self.db.cursor()
        order = [int(one) - 1 for one in re.findall(r"\$(\d+)", sql)]
        asked = re.sub(r"\$\d+", "?", sql) if parameters else sql
        self.last.execute(asked, *([[parameters[one] for one in order]] if parameters else []))
        return [tuple(row) for row in self.last.fetchall()] if self.last.description else []

    def columns(self) -> list[tuple[str, int]]:
        """Python's types in the place of numbers, which ODBC does not tell."""
        return [(one[0], one[1].__name__) for one in self.last.description]  # type: ignore[misc]

    def told(self, error: Any) -> Told:
        return Told(error.args[0], str(error.args[1]))

    def cancel(self) -> None:
        self.last.cancel()

    def close(self) -> None:
        self.db.close()


class OdbcAnsi(Odbc):
    name = "odbc ansi"
    driver = ANSI
