"""Every refusal is in docs/sql.md, and reads like one."""

import ast
import re

import pytest

from tests.support.refusals import DOCUMENT, WHY, refusals, shape, table, written

EVERY = refusals()


def test_the_document_has_every_refusal() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert written(text) == text, "run: python -m tests.support.refusals"


def test_there_are_many_and_each_class_says_why() -> None:
    assert len(EVERY) > 100 and {one.kind for one in EVERY} <= WHY.keys()


def is_primary_message(message: str) -> bool:
    """One line in lower case, without a full stop; names and SQL words may begin it."""
    first = re.match(r"\w+", message)
    begins = first is None or first[0].islower() or not first[0].isalpha() or first[0].isupper() or "_" in first[0]
    return bool(message) and "\n" not in message and not message.endswith(".") and begins


def is_sentence(hint: str) -> bool:
    return hint[0] in '…"({[' or hint[0].isupper() or hint.split("(")[0].islower()


def test_a_message_is_one_line_in_lower_case_without_full_stop() -> None:
    assert [refusal for refusal in EVERY if not is_primary_message(refusal.message)] == []
    assert not any(map(is_primary_message, ("", "It is not there", "no such table.", "no such\ntable")))


def test_a_hint_is_a_sentence() -> None:
    assert [refusal for refusal in EVERY if refusal.hint and not is_sentence(refusal.hint)] == []
    assert not is_sentence("write It otherwise")


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("'a'", "a"), ("f'a {b} c'", "a … c"), ("f'{a}{b} c'", "… c"), ("'a' 'b'", "ab"), ("x", "…"),
        ("'a' if x else 'b'", "a / b"), ("'a' if x else None", "a"), ("'a' + str(b)", "a…"),
    ],
)  # fmt: skip
def test_shapes(code: str, text: str) -> None:
    assert shape(ast.parse(code, mode="eval").body) == text


def test_a_refusal_that_is_missing_is_found() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    line = next(line for line in table().splitlines() if line.startswith("| 0A000"))
    assert written(text.replace(line + "\n", "")) == written(text) and line in text
