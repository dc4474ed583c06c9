"""Whatever the file holds, the loader either loads it or raises SchemaError with one line."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from dpsql.errors import SchemaError
from dpsql.schema.build import build_schema
from dpsql.schema.document import NodeRef
from dpsql.schema.fingerprint import hash_schema
from dpsql.schema.load import load_schema, parse_document

WORKED = [path.read_text() for path in sorted((Path(__file__).parents[3] / "schemas").glob("*.yaml"))]

SPLICES = st.one_of(
    st.text(max_size=8),
    st.sampled_from(
        ["null", "~", "''", "[]", "{}", "[", "]", "{", "}", ":", ": ", "\n", "\n  ", "- ", "*a", "&a ", "!!int ",
         "---\n", "true", "0", "-1", "1e-7", "1e999", ".nan", "1" * 200, "row", "${X}", "${NO}", "?", "<<: ", "\t",
         "\0", "\ud800", "9999-12-31", "0001-01-01T00:00:00+14:00", "'\\", '"\\UFFFFFFFF"', "patients.patient_id",
         "decimal(99,9)", "|\n"]
    ),
)  # fmt: skip


def attempt(text: str) -> None:
    """As `load_schema`, without the file."""
    try:
        schema = build_schema(NodeRef("s.yaml", "", parse_document(text, "s.yaml"), 1), Path("/x/s.yaml"), {"X": "x"})
    except SchemaError as error:
        assert "\n" not in error.message
        assert error.message.startswith("s.yaml:")
    else:
        assert all(column.domain.nullable for table in schema.tables for column in table.columns)
        for table in schema.tables:
            schema.find_unit_path(table)
        assert len(hash_schema(schema)) == 64


@st.composite
def mutated(draw: st.DrawFn) -> str:
    text = draw(st.sampled_from(WORKED))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 12)))
        text = text[:start] + draw(SPLICES) + text[end:]
    return text


@st.composite
def token_swapped(draw: st.DrawFn) -> str:
    """Swap whole words: these stay YAML more often, so they reach the deeper checks."""
    lines = draw(st.sampled_from(WORKED)).split("\n")
    words = [word.strip("{},[]") for line in lines for word in line.split()]
    for _ in range(draw(st.integers(1, 4))):
        number = draw(st.integers(0, len(lines) - 1))
        found = lines[number].split(" ")
        place = draw(st.integers(0, len(found) - 1))
        found[place] = draw(st.one_of(st.sampled_from(words), SPLICES))
        lines[number] = " ".join(found)
    return "\n".join(lines)


@settings(max_examples=250, deadline=None)
@given(mutated())
def test_mutated_files(text: str) -> None:
    attempt(text)


@settings(max_examples=250, deadline=None)
@given(token_swapped())
def test_files_with_swapped_words(text: str) -> None:
    attempt(text)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.yaml"
        path.write_bytes(data)
        try:
            load_schema(path, {})
        except SchemaError as error:
            assert "\n" not in error.message
        else:
            raise AssertionError("sixty random bytes are no schema")
