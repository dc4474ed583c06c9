"""Logins to a server: analysts with a verifier in the schema, or with a password in the environment.

Law: a name that nobody has is answered as one that somebody has, with a verifier made for it: the same messages, the
same work, the same salt each time (as PostgreSQL does). So nobody learns from a login who the analysts are.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from dpsql.base.scram import ITERATIONS, SALT_BYTES, Verifier, make_verifier, read_verifier
from dpsql.errors import SchemaError
from dpsql.schema.model import Analyst, Schema


@dataclass(frozen=True)
class Logins:
    """The verifiers of one schema's analysts, and dummy ones, without a password, for all other names."""

    verifiers: Mapping[str, Verifier]
    secret: bytes = field(repr=False)
    iterations: int = ITERATIONS
    salt: int = SALT_BYTES  # bytes
    without: tuple[str, ...] = ()
    """What the owner should know: who cannot log in, and why."""

    def find_verifier(self, user: str) -> tuple[Verifier, bool]:
        """The verifier of a user, and whether it is an analyst's. The dummy is always made, so both take as long."""
        dummy = self._dummy_verifier(user)
        return self.verifiers.get(user, dummy), user in self.verifiers

    def _dummy_verifier(self, user: str) -> Verifier:
        return Verifier(
            self.iterations,
            _derive_salt(self.secret, user, self.salt),
            _derive_key(self.secret, "stored key", user),
            _derive_key(self.secret, "server key", user),
        )


def stranger_logins(all_logins: Sequence[Logins]) -> Logins:
    """The logins of names that no database of a server has. Their dummy verifiers depend on the name alone: if they
    depended on the database too, a login would show which databases there are and who is an analyst of which."""
    secret = hashlib.sha256(b"".join(sorted(entry.secret for entry in all_logins))).digest()
    verifiers = [verifier for entry in all_logins for verifier in entry.verifiers.values()]
    return Logins(
        {},
        secret,
        _most_frequent(entry.iterations for entry in verifiers),
        _most_frequent(len(entry.salt) for entry in verifiers),
    )


def find_conspicuous(logins: Logins, strangers: Logins) -> tuple[str, ...]:
    """Analysts whose verifiers are unlike those of strangers: a login tells that they are there."""
    usual = strangers.iterations, strangers.salt
    return tuple(
        name for name, verifier in logins.verifiers.items() if (verifier.iterations, len(verifier.salt)) != usual
    )


def _most_frequent(numbers: Iterable[int]) -> int:
    return Counter(numbers).most_common(1)[0][0]


def load_logins(schema: Schema, secret: str, environment: Mapping[str, str]) -> Logins:
    """The logins of analysts with a password; `secret` is the owner's alone and lasts, as the ledger's id does."""
    key = hashlib.sha256(f"dpsql logins {secret}".encode()).digest()
    if not schema.analysts:
        raise SchemaError(
            f'{schema.path.name} has no analysts, so nobody could log in to "{schema.database}"',
            hint=f"Write: dpsql user add {schema.path.name} ana --epsilon 1 --delta 1e-8",
        )
    verifiers = {entry.name: _find_analyst_verifier(entry, key, environment) for entry in schema.analysts}
    usable = {name: entry for name, entry in verifiers.items() if entry is not None}
    if not usable:
        raise SchemaError(
            f'no analyst of {schema.path.name} has a password, so nobody could log in to "{schema.database}"',
            detail=" ".join(_describe_missing_password(entry) for entry in schema.analysts),
            hint=f"Write: dpsql user add {schema.path.name} {schema.analysts[0].name}",
        )
    return Logins(
        usable,
        key,
        _most_frequent(entry.iterations for entry in usable.values()),
        _most_frequent(len(entry.salt) for entry in usable.values()),
        tuple(_describe_missing_password(entry) for entry in schema.analysts if entry.name not in usable),
    )


def _describe_missing_password(analyst: Analyst) -> str:
    if analyst.password_env is None:
        return f'"{analyst.name}" has no password.'
    return f'The environment has no {analyst.password_env}, the password of "{analyst.name}".'


def _find_analyst_verifier(analyst: Analyst, key: bytes, environment: Mapping[str, str]) -> Verifier | None:
    if analyst.password is not None:
        parsed = read_verifier(analyst.password)
        if parsed is None:
            raise SchemaError(
                f'the password of "{analyst.name}" is no SCRAM-SHA-256 verifier that a client could use',
                hint="Make one with dpsql user add.",
            )
        return parsed
    if analyst.password_env is None:
        return None
    password = environment.get(analyst.password_env)
    if not password:
        return None
    # The salt of a name that nobody has: it lasts from one start to the next, as that of a kept verifier does.
    return make_verifier(password, _derive_salt(key, analyst.name, SALT_BYTES))


def _derive_salt(secret: bytes, user: str, size: int) -> bytes:
    return _derive_key(secret, "salt", user)[:size]


def _derive_key(secret: bytes, what: str, user: str) -> bytes:
    return hmac.new(secret, f"{what} {user}".encode(), "sha256").digest()
