"""What a prompt shows of a server at once: its database, and what is left of the account that has logged in."""

from __future__ import annotations

from dpsql.errors import Error
from dpsql.outlook import StatusPreview
from dpsql.plain import from_json
from dpsql.remote.exchange import query_json
from dpsql.remote.link import ServerConnection


def preview_remote_status(connection: ServerConnection) -> StatusPreview | None:
    """None where the server cannot tell it now; opening the connection tells the reason."""
    try:
        balance = query_json(connection, "SHOW BUDGET (FORMAT JSON)")
        return from_json(StatusPreview, {"database": connection.login.server.database, "balance": balance})
    except (Error, ValueError):
        return None
