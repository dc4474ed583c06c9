"""What a client says when it connects: who, which database, and settings; read as PostgreSQL reads it.

Nothing here looks at the schema: what is wrong with a setting is told after the login.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dpsql.errors import AccessDenied, InvalidParameter, Unsupported

_NOT_SETTINGS = ("user", "database", "options", "replication")
_OFF = ("", "false", "off", "no", "0", "f", "n")
_MOST_NAME = 128
"""Characters of a name: one that is longer is nobody's."""


@dataclass(frozen=True)
class Opening:
    user: str
    database: str
    settings: Mapping[str, str] = field(default_factory=dict)
    """Those of `options` first, then those that stand as parameters of their own; a later one counts."""
    unknown: tuple[str, ...] = ()
    """Options of the protocol that we have never heard of: `_pq_.…`."""


def read_opening(parameters: Mapping[str, str]) -> Opening:
    user = parameters.get("user", "")
    if not user:
        raise AccessDenied("no PostgreSQL user name specified in startup packet")
    if len(user) > _MOST_NAME or len(parameters.get("database", "")) > _MOST_NAME:
        raise AccessDenied("the name of a user or database is too long")
    return Opening(
        user,
        parameters.get("database") or user,
        {name: value for name, value in parameters.items() if name not in _NOT_SETTINGS and not name.startswith("_")},
        tuple(name for name in parameters if _is_protocol(name)),
    )


def settings_of(parameters: Mapping[str, str], opening: Opening) -> dict[str, str]:
    """The settings of a connection; raises what is wrong with them, for who has logged in.

    The time zone of the client's machine, which JDBC sends unasked, is no wish: times are in UTC, and the client is
    told so. Where it is wished for by `options` or SET, it is refused.
    """
    if parameters.get("replication", "").lower() not in _OFF:
        raise Unsupported("there is no replication here", hint="Leave out the parameter replication.")
    given = dict(read_options(parameters.get("options", "")))
    return given | {name.lower(): value for name, value in opening.settings.items() if name.lower() != "timezone"}


def read_options(text: str) -> list[tuple[str, str]]:
    """The settings of `options` in a connection string.

    >>> read_options("-c epsilon=0.2 --contributions-rows=3 -cTimeZone=Etc/UTC -c application_name=a\\\\ b")
    [('epsilon', '0.2'), ('contributions_rows', '3'), ('timezone', 'Etc/UTC'), ('application_name', 'a b')]
    """
    words, found = _words(text), list[tuple[str, str]]()
    place = 0
    while place < len(words):
        word = words[place]
        if word == "-c" and place + 1 < len(words):
            place += 1
            found.append(_setting(words[place], word))
        elif (word.startswith("-c") and len(word) > 2) or (word.startswith("--") and len(word) > 2):
            found.append(_setting(word[2:], word))
        else:
            raise InvalidParameter(
                f'invalid command-line argument for server process: "{word}"',
                hint="Options are settings: options='-c epsilon=0.2'.",
                sqlstate="42601",
            )
        place += 1
    return found


def _setting(text: str, word: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise InvalidParameter(f'"{word}" needs a value', hint="For example: -c epsilon=0.2.", sqlstate="42601")
    return name.lower().replace("-", "_"), value


def _words(text: str) -> list[str]:
    """Divided at spaces; a backslash takes the next character as it stands."""
    words, word, place = list[str](), "", 0
    begun = False
    while place < len(text):
        one = text[place]
        if one.isspace():
            if begun:
                words.append(word)
            word, begun = "", False
        else:
            begun = True
            if one == "\\" and place + 1 < len(text):
                place += 1
                one = text[place]
            word += one
        place += 1
    return [*words, word] if begun else words


def _is_protocol(name: str) -> bool:
    return name.startswith("_pq_.")
