"""The analysts of a schema: add one, set a password, remove one. Only the schema's file changes.

Law: the file that is written differs from the one that was read by that analyst alone, which is checked before it takes
the other's place; and that happens at once or not at all.
"""

from __future__ import annotations

import base64
import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from dpsql.base.private_files import open_private_file
from dpsql.base.scram import SALT_BYTES, make_verifier_text
from dpsql.errors import AccessDenied, InterfaceError, InternalError, OperationalError
from dpsql.schema.edit import add_analyst, remove_analyst, set_password
from dpsql.schema.keys import ANALYST_NAME
from dpsql.schema.load import load_schema, read_text, schema_from_text
from dpsql.schema.model import Analyst, Budget, Schema

Entropy = Callable[[int], bytes]

_BOM = b"\xef\xbb\xbf"
_MAX_PASSWORD = 1024
_GENERATED_BYTES = 15
"""Bytes of a password that is made: 120 bits."""


@dataclass(frozen=True)
class User:
    name: str
    budget: Budget
    parent: str | None
    password: str
    """`make_verifier_text`, `environment` or `none`: where it comes from, never what it is."""


def list_users(path: str | Path) -> tuple[User, ...]:
    return tuple(_user_of(analyst) for analyst in load_schema(path).analysts)


def _user_of(analyst: Analyst) -> User:
    kind = "verifier" if analyst.password else "environment" if analyst.password_env else "none"
    return User(analyst.name, analyst.budget, analyst.parent, kind)


def find_user(path: str | Path, name: str) -> User | None:
    return next((user for user in list_users(path) if user.name == name), None)


def add_user(path: str | Path, name: str, epsilon: str, delta: str, password: str | None, entropy: Entropy) -> None:
    """A new analyst; the schema's reader says what is wrong with a name or a budget."""
    for what, text in (("epsilon", epsilon), ("delta", delta)):
        if re.fullmatch(r"[0-9.eE+-]+", text, re.ASCII) is None:
            raise InterfaceError(f"the {what} of a budget is a number, not {text}")
    if re.fullmatch(ANALYST_NAME, name) is None:
        raise InterfaceError(
            f'"{name}" cannot be the name of an analyst',
            hint="It begins with a letter, and has letters, digits and _ . @ - after it; at most 63 in all.",
        )
    entry = f"{{budget: {{epsilon: {epsilon}, delta: {delta}}}"
    if password is not None:
        entry += f', password: "{_make_verifier(password, entropy)}"'

    def is_expected_change(before: Schema, after: Schema) -> bool:
        *others, new = after.analysts or (None,)
        return new is not None and new.name == name and tuple(others) == before.analysts

    _change_schema(path, lambda text: add_analyst(text, name, entry + "}"), is_expected_change)


def set_user_password(path: str | Path, name: str, password: str, entropy: Entropy) -> None:
    """The analyst's password is this one, instead of any other."""
    stored = _make_verifier(password, entropy)

    def is_expected_change(before: Schema, after: Schema) -> bool:
        new = (
            replace(analyst, password=stored, password_env=None) if analyst.name == name else analyst
            for analyst in before.analysts
        )
        return after.analysts == tuple(new)

    _require_user(path, name)
    _change_schema(path, lambda text: set_password(text, name, stored), is_expected_change)


def remove_user(path: str | Path, name: str) -> None:
    def is_expected_change(before: Schema, after: Schema) -> bool:
        return after.analysts == tuple(analyst for analyst in before.analysts if analyst.name != name)

    _require_user(path, name)
    _change_schema(path, lambda text: remove_analyst(text, name), is_expected_change)


def generate_password(entropy: Entropy) -> str:
    """Four groups of six letters and digits, 120 bits."""
    text = base64.b32encode(entropy(_GENERATED_BYTES)).decode("ascii").lower()
    return "-".join(text[start : start + 6] for start in range(0, len(text), 6))


def is_world_readable(path: str | Path) -> bool:
    """Whether everyone on this machine may try passwords against the file's verifiers."""
    return os.name == "posix" and bool(os.stat(path).st_mode & stat.S_IROTH)


def check_password(password: str) -> None:
    if not 0 < len(password) <= _MAX_PASSWORD or any(character in "\r\n\0" for character in password):
        raise InterfaceError("the password is empty, or longer than a line", hint="Give one line of text.")


def _make_verifier(password: str, entropy: Entropy) -> str:
    check_password(password)
    return make_verifier_text(password, entropy(SALT_BYTES))


def _require_user(path: str | Path, name: str) -> None:
    existing = list_users(path)
    if name not in {user.name for user in existing}:
        hint = f"Analysts: {', '.join(user.name for user in existing)}." if existing else "It has none."
        raise AccessDenied(f'there is no analyst "{name}" in the schema', hint=hint)


# --- the file --------------------------------------------------------------------------------------------------------


def _change_schema(path: str | Path, edit: Callable[[str], str], is_intended: Callable[[Schema, Schema], bool]) -> None:
    real_path = Path(os.path.realpath(path))
    before, raw = schema_from_text(read_text(str(real_path)), path), real_path.read_bytes()
    text = edit(read_text(str(real_path)))
    after = schema_from_text(text, path)
    if not is_intended(before, after) or replace(after, analysts=before.analysts) != before:
        raise InternalError(
            "the schema is laid out in a way that cannot be changed here", hint="Change the analysts by hand."
        )
    _replace_file(real_path, raw, (_BOM if raw.startswith(_BOM) else b"") + text.encode())


def _replace_file(real_path: Path, before: bytes, after: bytes) -> None:
    """At once, with the mode that it had, and only if nobody else has changed it meanwhile."""
    draft = real_path.with_name(f".{real_path.name}.{os.getpid()}.new")
    try:
        status = real_path.stat()
        descriptor = open_private_file(draft, os.O_EXCL | os.O_WRONLY)
        try:
            with open(descriptor, "wb") as file:
                file.write(after)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(draft, stat.S_IMODE(status.st_mode))
            if hasattr(os, "chown") and (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid()):
                os.chown(draft, status.st_uid, status.st_gid)
            if real_path.read_bytes() != before:
                raise OperationalError("the schema was changed by someone else meanwhile", hint="Try it again.")
            os.replace(draft, real_path)
        finally:
            draft.unlink(missing_ok=True)  # only one's own
    except OSError as error:
        raise OperationalError(f'the schema "{real_path}" cannot be written', detail=f"{error.strerror}.") from None
