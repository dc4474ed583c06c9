"""Every refusal is in docs/sql.md, and reads like one."""

import ast
import re

import pytest

from tests.support.refusals import DOCUMENT, WHY, Refusal, refusals, shape, table, written

EVERY = refusals()


def test_the_document_has_every_refusal() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert written(text) == text, "run: python -m tests.support.refusals"


def test_there_are_many_and_each_class_says_why() -> None:
    assert len(EVERY) > 100 and {one.kind for one in EVERY} <= WHY.keys()


@pytest.mark.parametrize("one", EVERY, ids=lambda one: f"{one.kind}: {one.message[:40]}")
def test_a_message_is_one_line_in_lower_case_without_full_stop(one: Refusal) -> None:
    assert one.message and "\n" not in one.message and not one.message.endswith(".")
    first = re.match(r"\w+", one.message)
    assert first is None or first[0].islower() or not first[0].isalpha() or first[0].isupper() or "_" in first[0]


@pytest.mark.parametrize("one", [one for one in EVERY if one.hint], ids=lambda one: one.hint[:40])
def test_a_hint_is_a_sentence(one: Refusal) -> None:
    assert one.hint[0] in '…"({[' or one.hint[0].isupper() or one.hint.split("(")[0].islower()


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
