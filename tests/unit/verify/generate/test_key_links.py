"""Columns that lead along keys: those of composite keys together, and in one source."""

from __future__ import annotations

from pathlib import Path

from dpsql.schema.load import load_schema
from dpsql.verify.generate.key_links import KeyLink, columns_along, find_key_links

SCHEMA = """\
dpsql: 1
engine: "duckdb:///shop.duckdb"
privacy: {unit: people.pid, budget: {epsilon: 9, delta: 1e-6}, contributions: {rows: 1, groups: 1}}
tables:
  people: {unit: pid, unique: [pid], columns: {pid: {type: bigint}}}
  sales:
    unit: {pid: people.pid}
    unique: [[ticket, item]]
    columns: {ticket: {type: bigint, determines_unit: true}, item: {type: bigint}, pid: {type: bigint}}
  returned:
    unit: {back_item: sales.item, back_ticket: sales.ticket}
    columns: {back_ticket: {type: bigint}, back_item: {type: bigint}}
  items: {public: true, unique: [item], columns: {item: {type: bigint}}}
"""
TICKETS = (("sales", "ticket"), ("returned", "back_ticket"))
ITEMS = (("sales", "item"), ("returned", "back_item"))


def links(folder: Path) -> tuple[KeyLink, ...]:
    (folder / "shop.yaml").write_text(SCHEMA, encoding="utf-8")
    return find_key_links(load_schema(folder / "shop.yaml"))


def test_keys_lead_together_with_what_refers_to_them(tmp_path: Path) -> None:
    people, sales, tickets = links(tmp_path)
    assert people.members == ((("people", "pid"),), (("sales", "pid"),))
    assert sales.members == tuple(zip(TICKETS, ITEMS, strict=True)) and not sales.determining
    assert tickets.members == tuple((origin,) for origin in TICKETS) and tickets.determining


def test_a_key_is_equated_by_all_of_its_columns(tmp_path: Path) -> None:
    _, sales, tickets = links(tmp_path)
    ticket, item = frozenset(TICKETS), frozenset(ITEMS)
    assert sales.is_equated([ticket, item]) and sales.is_equated([frozenset(TICKETS[:1]), item])
    assert not sales.is_equated([ticket]) and not sales.is_equated([item])
    assert not sales.is_equated([frozenset({TICKETS[0], ITEMS[1]}), item])
    assert tickets.is_equated([ticket]) and not tickets.is_equated([item])


def test_columns_are_of_one_source(tmp_path: Path) -> None:
    _, sales, _ = links(tmp_path)
    scope = [("a.t", TICKETS[0]), ("a.i", ITEMS[0]), ("b.t", TICKETS[1]), ("c.i", ITEMS[1]), ("c.n", None)]
    assert columns_along(sales, scope) == [("a.t", "a.i")]
