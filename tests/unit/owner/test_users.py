"""Analysts in a schema's file: whatever its layout, one of them changes and nothing else does."""

from __future__ import annotations

import os
import re
from fractions import Fraction
from pathlib import Path

import pytest

from dpsql.base.scram import make_verifier_text
from dpsql.errors import AccessDenied, Error, InterfaceError, InternalError, OperationalError, SchemaError
from dpsql.owner import users
from dpsql.owner.users import add_user, find_user, generate_password, list_users, remove_user, set_user_password
from dpsql.schema import edit
from dpsql.schema.fingerprint import hash_schema
from dpsql.schema.load import load_schema

TAIL = """\
tables:
  people:   # whom it is about
    unit: uid
    unique: [uid]
    source: people.csv
    columns:
      uid: {type: bigint}
"""
HEAD = "dpsql: 1\nledger: sqlite:///x.ledger\nprivacy:\n  unit: people.uid\n  budget: {epsilon: 8, delta: 1e-6}\n"
OLD = "SCRAM-SHA-256$4096:AAAAAAAAAAAAAAAAAAAAAA==$" + "A" * 43 + "=:" + "B" * 43 + "="

# The analysts as owners may lay them out; all have "ana" with a budget of 4 and "bi" after her, where they have any.
LAYOUTS = {
    "flow entries": """\
analysts:
  ana: {budget: {epsilon: 4, delta: 1e-7}}  # asks much
  bi: {budget: {epsilon: 2, delta: 0}}

""",
    "blocks": """\
analysts:
  ana:
    budget:
      epsilon: 4
      delta: 1e-7
  # of the dashboards
  bi:
    budget: {epsilon: 2, delta: 0}
# the end of them
""",
    "all in one": """\
analysts: {ana: {budget: {epsilon: 4, delta: 1e-7}}, bi: {budget: {epsilon: 2, delta: 0}}}
""",
    "over lines": """\
analysts: {
  ana: {budget: {epsilon: 4,
    delta: 1e-7}},
  bi: {budget: {epsilon: 2, delta: 0}},  # last
}
""",
    "quoted": """\
"analysts":
  'ana': {"budget": {epsilon: '4', delta: 1e-7}}
  "bi": {budget: {epsilon: 2, delta: 0}}
""",
    "a wide indent": """\
analysts:
        ana: {budget: {epsilon: 4, delta: 1e-7}}
        bi:
            budget:
                epsilon: 2
                delta: 0
""",
    "with passwords": f"""\
analysts:
  ana: {{password: {OLD}, budget: {{epsilon: 4, delta: 1e-7}}}}
  bi:
    password_env: BI  # set by systemd
    budget: {{epsilon: 2, delta: 0}}
""",
}


def entropy(size: int) -> bytes:
    return bytes(range(size))


def schema(folder: Path, analysts: str, *, first: bool = True, line: str = "\n", end: str = "") -> Path:
    path = folder / "s.yaml"
    text = HEAD + analysts + TAIL if first else HEAD + TAIL + analysts
    path.write_bytes((text + end).replace("\n", line).encode())
    return path


def comments(text: str) -> list[str]:
    return re.findall(r"#.*", text)


def others(path: Path) -> object:
    """All of a schema but its analysts."""
    loaded = load_schema(path)
    return loaded.privacy, loaded.tables, loaded.ledger, loaded.engine, loaded.groups


@pytest.mark.parametrize("line", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("first", [True, False], ids=["before tables", "after tables"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_in_every_layout_one_analyst_changes(tmp_path: Path, layout: str, first: bool, line: str) -> None:
    path = schema(tmp_path, LAYOUTS[layout], first=first, line=line)
    before, rest = path.read_bytes().decode(), others(path)
    add_user(path, "cyd", "0.5", "1e-9", "secret", entropy)
    assert [user.name for user in list_users(path)] == ["ana", "bi", "cyd"]
    cyd = find_user(path, "cyd")
    assert cyd is not None and cyd.password == "verifier" and cyd.budget.epsilon == Fraction(1, 2)
    for name in ("ana", "bi"):
        set_user_password(path, name, f"of {name}", entropy)
    kept = {analyst.name: analyst.password for analyst in load_schema(path).analysts}
    assert kept == {name: make_verifier_text(word, entropy(16)) for name, word in
                    (("ana", "of ana"), ("bi", "of bi"), ("cyd", "secret"))}  # fmt: skip
    assert [user.budget.epsilon for user in list_users(path)] == [4, 2, Fraction(1, 2)]
    remove_user(path, "ana")
    assert [user.name for user in list_users(path)] == ["bi", "cyd"]
    after = path.read_bytes().decode()
    assert others(path) == rest
    if "ana" not in "".join(comments(before)):
        lost = set(comments(before)) - set(comments(after))
        assert lost <= {"# asks much" + "\r" * (line != "\n"), "# set by systemd" + "\r" * (line != "\n")}
    assert set(re.findall("\r?\n", after)) == {line}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_only_its_own_lines_are_touched(tmp_path: Path, layout: str) -> None:
    path = schema(tmp_path, LAYOUTS[layout])
    before = path.read_text().splitlines()
    add_user(path, "cyd", "1", "0", None, entropy)
    after = path.read_text().splitlines()
    changed = [line for line in after if line not in before]
    assert len(changed) == 1 and "cyd: {budget: {epsilon: 1, delta: 0}}" in changed[0]


def test_the_first_and_the_last_one(tmp_path: Path) -> None:
    path = schema(tmp_path, "")
    before = path.read_text()
    add_user(path, "ana", "1", "0", None, entropy)
    assert [user.name for user in list_users(path)] == ["ana"]
    assert "\nanalysts:\n  ana: {budget: {epsilon: 1, delta: 0}}\n\ntables:" in path.read_text()
    remove_user(path, "ana")
    assert list_users(path) == () and path.read_text().replace("\n\n", "\n") == before


def test_a_document_of_braces(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(
        "{dpsql: 1, privacy: {unit: people.uid, budget: {epsilon: 8, delta: 0}}, tables: {people: {unit: uid, "
        "unique: [uid], source: p.csv, columns: {uid: {type: bigint}}}}}"
    )
    add_user(path, "ana", "1", "0", "x", entropy)
    set_user_password(path, "ana", "y", entropy)
    (ana,) = load_schema(path).analysts
    assert ana.password == make_verifier_text("y", entropy(16))


def test_without_a_line_break_at_the_end_and_with_a_byte_order_mark(tmp_path: Path) -> None:
    text = HEAD + TAIL + "analysts:\n  ana: {budget: {epsilon: 4, delta: 0}} # ü"
    path = tmp_path / "s.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    add_user(path, "bob", "1", "0", None, entropy)
    assert path.read_bytes() == b"\xef\xbb\xbf" + text.encode() + b"\n  bob: {budget: {epsilon: 1, delta: 0}}"


@pytest.mark.parametrize(
    "name", ["no", "null", "y", "ana.b@example.com", "Ünal", "a b", "dataset", "x" * 70, "a: b", "#"]
)
def test_names_are_names_or_refused(tmp_path: Path, name: str) -> None:
    path = schema(tmp_path, LAYOUTS["blocks"])
    before = path.read_bytes()
    if re.fullmatch(r"[A-Za-z_][\w.@-]{0,62}", name, re.ASCII) and name != "dataset":
        add_user(path, name, "1", "0", None, entropy)
        assert list_users(path)[-1].name == name
    else:
        with pytest.raises(Error):
            add_user(path, name, "1", "0", None, entropy)
        assert path.read_bytes() == before


def test_a_name_has_at_most_63_characters_as_in_a_schema(tmp_path: Path) -> None:
    """Told as a name that cannot be, and not as a fault of the schema's file."""
    path = schema(tmp_path, LAYOUTS["blocks"])
    add_user(path, "x" * 63, "1", "0", None, entropy)
    with pytest.raises(InterfaceError, match="cannot be the name of an analyst") as refused:
        add_user(path, "x" * 64, "1", "0", None, entropy)
    assert refused.value.hint is not None and "63" in refused.value.hint


@pytest.mark.parametrize(
    ("epsilon", "delta"), [("x", "0"), ("1}", "0"), ("1", "0, password: x"), ("0", "0"), ("1", "2")]
)
def test_what_is_no_budget_is_refused(tmp_path: Path, epsilon: str, delta: str) -> None:
    path = schema(tmp_path, LAYOUTS["blocks"])
    before = path.read_bytes()
    with pytest.raises((InterfaceError, SchemaError)):
        add_user(path, "bob", epsilon, delta, None, entropy)
    assert path.read_bytes() == before


def test_a_known_user_is_not_added_and_an_unknown_one_gets_no_password(tmp_path: Path) -> None:
    path = schema(tmp_path, LAYOUTS["blocks"])
    before = path.read_bytes()
    with pytest.raises(SchemaError, match="repeated"):
        add_user(path, "ana", "1", "0", None, entropy)
    with pytest.raises(AccessDenied, match="ana, bi"):
        set_user_password(path, "eve", "x", entropy)
    with pytest.raises(AccessDenied, match="ana, bi"):
        remove_user(path, "eve")
    for password in ("", "two\nlines", "x" * 2000):
        with pytest.raises(InterfaceError):
            set_user_password(path, "ana", password, entropy)
    assert path.read_bytes() == before


def test_an_edit_that_does_more_than_was_meant_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = schema(tmp_path, LAYOUTS["blocks"])
    before = path.read_bytes()

    def careless(text: str, name: str, entry: str) -> str:
        return edit.add_analyst(text, name, entry).replace("epsilon: 8", "epsilon: 80")

    monkeypatch.setattr(users, "add_analyst", careless)
    with pytest.raises(InternalError, match="by hand"):
        add_user(path, "bob", "1", "0", None, entropy)
    assert path.read_bytes() == before


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_the_file_keeps_its_mode_and_its_path(tmp_path: Path) -> None:
    path = schema(tmp_path, LAYOUTS["blocks"])
    path.chmod(0o640)
    link = tmp_path / "link.yaml"
    link.symlink_to(path)
    set_user_password(link, "ana", "x", entropy)
    assert link.is_symlink() and path.stat().st_mode & 0o777 == 0o640
    assert sorted(one.name for one in tmp_path.iterdir()) == ["link.yaml", "s.yaml"], "no draft is left"


def test_a_file_that_someone_else_changes_meanwhile_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = schema(tmp_path, LAYOUTS["blocks"])

    def meanwhile(text: str, name: str, kept: str) -> str:
        path.write_text(path.read_text() + "# mine\n")
        return edit.set_password(text, name, kept)

    monkeypatch.setattr(users, "set_password", meanwhile)
    with pytest.raises(OperationalError, match="meanwhile"):
        set_user_password(path, "ana", "x", entropy)
    assert path.read_text().endswith("# mine\n") and len(list(tmp_path.iterdir())) == 1


def test_made_passwords_have_120_bits() -> None:
    made = generate_password(os.urandom)
    assert re.fullmatch(r"([a-z2-7]{6}-){3}[a-z2-7]{6}", made) and made != generate_password(os.urandom)
    assert generate_password(lambda size: b"\xff" * size) == "777777-777777-777777-777777"


def test_a_password_is_nowhere_in_what_is_shown(tmp_path: Path) -> None:
    path = schema(tmp_path, LAYOUTS["blocks"])
    before = hash_schema(load_schema(path))
    set_user_password(path, "ana", "hunter22", entropy)
    loaded = load_schema(path)
    assert hash_schema(loaded) == before, "nor in what releases are found by"
    shown = repr(loaded) + str(loaded.analysts) + repr(list_users(path))
    assert "hunter22" not in path.read_text() + shown and "SCRAM" not in shown


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_a_draft_is_its_owner_s_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it has the mode of the schema: it holds verifiers."""
    path = schema(tmp_path, LAYOUTS["blocks"])
    modes = []
    sync = os.fsync

    def look(descriptor: int) -> None:
        modes.extend(one.stat().st_mode & 0o777 for one in tmp_path.iterdir() if one.name.endswith(".new"))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", look)
    umask = os.umask(0)
    try:
        set_user_password(path, "ana", "x", entropy)
    finally:
        os.umask(umask)
    assert modes == [0o600]


def test_a_file_with_the_drafts_name_is_kept(tmp_path: Path) -> None:
    path = schema(tmp_path, LAYOUTS["blocks"])
    other = tmp_path / f".{path.name}.{os.getpid()}.new"
    other.write_text("someone else's")
    with pytest.raises(OperationalError, match="cannot be written"):
        set_user_password(path, "ana", "x", entropy)
    assert other.read_text() == "someone else's"
