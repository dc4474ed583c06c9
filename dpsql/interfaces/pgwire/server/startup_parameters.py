"""The startup message: user, database and settings, read as PostgreSQL reads them.

Nothing here looks at the schema: what is wrong with a setting is told after the login.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dpsql.errors import AccessDenied, InvalidParameter, Unsupported

_NOT_SETTINGS = ("user", "database", "options", "replication")
_OFF_VALUES = ("", "false", "off", "no", "0", "f", "n")
_MAX_NAME_LENGTH = 128
"""Characters of a name: one that is longer is nobody's."""


@dataclass(frozen=True)
class StartupRequest:
    user: str
    database: str
    settings: Mapping[str, str] = field(default_factory=dict)
    """Those of `options` first, then those that stand as parameters of their own; a later one counts."""
    unknown: tuple[str, ...] = ()
    """Options of the protocol that we have never heard of: `_pq_.…`."""


def read_startup_request(parameters: Mapping[str, str]) -> StartupRequest:
    user = parameters.get("user", "")
    if not user:
        raise AccessDenied("no PostgreSQL user name specified in startup packet")
    if len(user) > _MAX_NAME_LENGTH or len(parameters.get("database", "")) > _MAX_NAME_LENGTH:
        raise AccessDenied("the name of a user or database is too long")
    return StartupRequest(
        user,
        parameters.get("database") or user,
        {name: value for name, value in parameters.items() if name not in _NOT_SETTINGS and not name.startswith("_")},
        tuple(name for name in parameters if _is_protocol_option(name)),
    )


def startup_settings_of(parameters: Mapping[str, str], request: StartupRequest) -> dict[str, str]:
    """The settings of a connection; raises what is wrong with them, for who has logged in."""
    if parameters.get("replication", "").lower() not in _OFF_VALUES:
        raise Unsupported("there is no replication here", hint="Leave out the parameter replication.")
    option_settings = dict(parse_startup_options(parameters.get("options", "")))
    return option_settings | {name.lower(): value for name, value in request.settings.items()}


def parse_startup_options(text: str) -> list[tuple[str, str]]:
    """The settings of `options` in a connection string.

    >>> parse_startup_options("-c epsilon=0.2 --contributions-rows=3 -cTimeZone=Etc/UTC -c application_name=a\\\\ b")
    [('epsilon', '0.2'), ('contributions_rows', '3'), ('timezone', 'Etc/UTC'), ('application_name', 'a b')]
    """
    words, settings = _split_words(text), list[tuple[str, str]]()
    index = 0
    while index < len(words):
        word = words[index]
        if word == "-c" and index + 1 < len(words):
            index += 1
            settings.append(_split_setting(words[index], word))
        elif (word.startswith("-c") and len(word) > 2) or (word.startswith("--") and len(word) > 2):
            settings.append(_split_setting(word[2:], word))
        else:
            raise InvalidParameter(
                f'invalid command-line argument for server process: "{word}"',
                hint="Options are settings: options='-c epsilon=0.2'.",
                sqlstate="42601",
            )
        index += 1
    return settings


def _split_setting(text: str, word: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise InvalidParameter(f'"{word}" needs a value', hint="For example: -c epsilon=0.2.", sqlstate="42601")
    return name.lower().replace("-", "_"), value


def _split_words(text: str) -> list[str]:
    """Divided at spaces; a backslash takes the next character as it stands."""
    words, word, index = list[str](), "", 0
    in_word = False
    while index < len(text):
        character = text[index]
        if character.isspace():
            if in_word:
                words.append(word)
            word, in_word = "", False
        else:
            in_word = True
            if character == "\\" and index + 1 < len(text):
                index += 1
                character = text[index]
            word += character
        index += 1
    return [*words, word] if in_word else words


def _is_protocol_option(name: str) -> bool:
    return name.startswith("_pq_.")
