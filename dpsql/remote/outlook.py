"""What a prompt shows of a server at once: its database, and what is left of the account that has logged in."""

from __future__ import annotations

from dpsql.errors import Error
from dpsql.outlook import Outlook
from dpsql.plain import from_plain
from dpsql.remote.exchange import ask_json
from dpsql.remote.link import Link


def look_remotely(link: Link) -> Outlook | None:
    """None where the server cannot tell it now; opening the connection tells the reason."""
    try:
        balance = ask_json(link, "SHOW BUDGET (FORMAT JSON)")
        return from_plain(Outlook, {"database": link.login.server.database, "balance": balance})
    except (Error, ValueError):
        return None
