"""`dpsql check`: exact figures for the owner, suggestions that help, and no trace in any ledger."""

import json
import re
import shutil
import tempfile

import duckdb
import pytest

import dpsql
from dpsql.owner.check.check import check_schema
from dpsql.owner.check.report import REPORT_HEADING, Severity
from dpsql.schema.load import load_schema

pytestmark = pytest.mark.slow

SCHEMA = """
dpsql: 1
engine: duckdb:///shop.duckdb
privacy:
  unit: users.user_id
  budget: {epsilon: 4, delta: 1e-6}
  query: {epsilon: 0.5, delta: 1e-8}
  contributions: {rows: 4, groups: 2}
tables:
  users:
    unit: user_id
    unique: [user_id]
    columns:
      user_id: {type: bigint}
      age: {type: integer, bounds: [20, 60]}
      sex: {type: text, values: [f, m]}
  orders:
    unit: {user_id: users.user_id}
    unique: [order_id]
    columns:
      order_id: {type: bigint}
      user_id: {type: bigint}
      price: {type: double, bounds: [0, 100]}
      kind: {type: text, max_length: 5}
      at: {type: timestamp, bounds: [2024-01-01, 2025-01-01]}
  items:
    unit: {order_id: orders.order_id}
    columns:
      order_id: {type: bigint}
      weight: {type: "decimal(6,2)", bounds: [0, 10]}
  shops:
    public: true
    columns: {shop: {type: text}}
"""
DATA = """
CREATE TABLE users AS SELECT i AS user_id, (i % 100)::INTEGER AS age,
    CASE i % 10 WHEN 0 THEN NULL WHEN 1 THEN 'x' WHEN 2 THEN 'f' ELSE 'm' END AS sex FROM range(1000) t(i);
-- Unit 0 has 101 orders, nine others have 10 each, all others one; 10 orders belong to nobody, 20 to someone unknown.
CREATE TABLE orders AS
    SELECT row_number() OVER () AS order_id, user_id,
           CASE n % 50 WHEN 0 THEN 'NaN'::DOUBLE WHEN 1 THEN 200 WHEN 2 THEN -5 ELSE 50 END AS price,
           CASE WHEN n % 25 = 0 THEN 'too long' ELSE 'k' || n % 3 END AS kind,
           TIMESTAMP '2023-12-31' + INTERVAL 1 DAY * (n % 10) AS at
    FROM (SELECT user_id, row_number() OVER () AS n FROM (
        SELECT i AS user_id FROM range(1000) t(i)
        UNION ALL SELECT 0 FROM range(100) UNION ALL SELECT 1 + i % 9 FROM range(81) t(i)
        UNION ALL SELECT NULL FROM range(10) UNION ALL SELECT 5000 + i FROM range(20) t(i)));
CREATE TABLE items AS SELECT i AS order_id, 1.5 AS weight FROM range(1, 1301) t(i);
CREATE TABLE shops AS SELECT 'a' AS shop;
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The shop that each test has a copy of."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "shop.yaml").write_text(SCHEMA)
    with duckdb.connect(str(folder / "shop.duckdb")) as db:
        db.execute(DATA)
    return folder / "shop.yaml"


@pytest.fixture
def shop(made, tmp_path):
    for path in made.parent.iterdir():
        shutil.copy(path, tmp_path)
    return tmp_path / "shop.yaml"


@pytest.fixture(scope="module")
def report(made):
    """Of the shop as it is, for tests that change nothing."""
    return check_schema(made)


def change(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    return str(path)


def tables_of(report):
    return {table.name: table for table in report.tables}


def columns_of(table):
    return {column.name: column for column in table.columns}


def exact(path, sql):
    with duckdb.connect(str(path.parent / "shop.duckdb"), read_only=True) as db:
        return db.execute(sql).fetchone()


# --- figures ---------------------------------------------------------------------------------------------------------


def test_shares_of_rows_are_those_of_the_data(shop, report):
    tables = tables_of(report)
    users, orders = columns_of(tables["users"]), columns_of(tables["orders"])
    rows = tables["orders"].rows
    assert (tables["users"].rows, rows) == (1000, 1211)
    assert (users["age"].below, users["age"].above) == (0.2, 0.39)
    assert (users["sex"].null, users["sex"].unlisted) == (0.1, 0.1)
    for name, condition in {
        "unfit": "isnan(price)", "below": "price < 0", "above": "price > 100 AND NOT isnan(price)",
    }.items():  # fmt: skip
        assert getattr(orders["price"], name) * rows == pytest.approx(
            exact(shop, f"SELECT count(*) FROM orders WHERE {condition}")[0]
        ), name
    assert orders["kind"].too_long * rows == pytest.approx(
        exact(shop, "SELECT count(*) FROM orders WHERE length(kind) > 5")[0]
    )
    assert orders["at"].below * rows == pytest.approx(
        exact(shop, "SELECT count(*) FROM orders o WHERE o.\"at\" < '2024-01-01'")[0]
    )


def test_units_are_counted_along_their_way(shop, report):
    tables = tables_of(report)
    orders, items = tables["orders"], tables["items"]
    assert (orders.units, orders.without_unit, orders.orphans) == (1020, 10, 20)
    held, units = exact(
        shop,
        """SELECT count(user_id), count(DISTINCT user_id)
                                 FROM items LEFT JOIN orders USING (order_id)""",
    )
    missing = exact(shop, "SELECT count(*) FROM items WHERE order_id NOT IN (SELECT order_id FROM orders)")[0]
    assert (items.units, items.rows - items.without_unit, items.orphans) == (units, held, missing)
    assert missing > 0
    assert (tables["shops"].units, tables["shops"].questions) == (None, ())


def test_norms_are_what_the_plan_does(report):
    """The figure from a histogram, and the answer that a session gives without noise."""
    orders = tables_of(report)["orders"]
    declared = orders.norms[0]
    assert declared.rows == 4
    assert declared.units_clipped == pytest.approx(10 / 1020)
    assert declared.rows_lost == pytest.approx((97 + 9 * 6) / 1201)
    (counted,) = (one for one in orders.questions if one.sql == "SELECT COUNT(*) FROM orders")
    assert (counted.exact, counted.lost) == (1201, pytest.approx(declared.rows_lost, abs=1e-4))
    noises = {norm.rows: norm.noise for norm in orders.norms}
    assert noises[101] == pytest.approx(noises[4] * 101 / 4)


def test_what_bounds_lose_is_seen_in_questions(shop, report):
    users = {one.sql: one for one in tables_of(report)["users"].questions}
    asked = users["SELECT SUM(age) FROM users"]
    true, clipped = exact(shop, "SELECT sum(age), sum(greatest(20, least(60, age))) FROM users")
    assert asked.exact == true and asked.lost == pytest.approx((true - clipped) / true, abs=1e-6)
    by_sex = users["SELECT sex, COUNT(*) FROM users GROUP BY sex"]
    assert by_sex.groups == 2 and by_sex.exact == (100 + 700) / 2 and by_sex.lost == 0


def test_noise_is_that_of_the_default_epsilon(shop, report):
    with dpsql.connect(shop) as connection:
        for table in report.tables:
            for asked in table.questions:
                (offer,) = (one for one in connection.explain(asked.sql).offers if one.chosen)
                if offer.within[-1] is not None and not asked.groups:
                    assert asked.noise * abs(asked.exact) == pytest.approx(offer.within[-1])


def test_the_epsilon_for_five_percent_gives_five_percent(shop, report):
    (counted,) = (one for one in tables_of(report)["orders"].questions if "SELECT COUNT(*)" in one.sql)
    with dpsql.connect(shop, epsilon=f"{counted.epsilon:.6g}") as connection:
        error = 1.96 * connection.explain(counted.sql).expected[0]
    assert 0.9 * 0.05 < error / counted.exact <= 1.01 * 0.05


def test_undeclared_keys_report_how_many_groups_would_show(shop):
    with duckdb.connect(str(shop.parent / "shop.duckdb")) as db:
        db.execute("UPDATE orders SET kind = 'r' || order_id WHERE order_id < 31")
    (kind,) = tables_of(check_schema(shop))["orders"].keys
    assert kind.column == "kind" and kind.groups == 33 and kind.shown == 3
    assert kind.rows_hidden == pytest.approx(
        29
        / exact(
            shop,
            """SELECT count(kind) FROM orders WHERE length(kind) <= 5
                                                                AND user_id IS NOT NULL""",
        )[0],
        abs=0.01,
    )
    assert kind.units_to_appear > 30


def test_budgets_are_counted_as_the_ledger_will(run, shop):
    change(shop, "tables:", "analysts:\n  ana: {budget: {epsilon: 2, delta: 5e-7}}\ntables:")
    told = {one.name: one.statements for one in check_schema(shop).accounts}
    run("query", str(shop), "SELECT 1", "--user", "ana")  # makes the ledger
    accounts = json.loads(run("budget", str(shop), "--json").out)["accounts"]
    assert told == {one["account"]: one["default"]["more"] for one in accounts}


# --- no trace --------------------------------------------------------------------------------------------------------


def everything(folder):
    return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in sorted(folder.rglob("*")) if path.is_file()}


def test_it_leaves_no_trace(run, shop, monkeypatch, tmp_path_factory):
    """No ledger is made, one that is there is not touched, no version is registered, no copy of rows stays."""
    temporary = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    before = everything(shop.parent)
    run("check", str(shop))
    assert everything(shop.parent) == before and list(temporary.iterdir()) == []
    run("query", str(shop), "SELECT COUNT(*) FROM users")
    before = everything(shop.parent)
    assert any(path.name.endswith(".ledger") for path in before)
    run("check", str(shop))
    assert everything(shop.parent) == before and list(temporary.iterdir()) == []


def test_copies_of_text_files_are_removed(run, tmp_path, monkeypatch, tmp_path_factory):
    temporary = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    (tmp_path / "users.csv").write_text("user_id,age\n" + "".join(f"{i},{i % 90}\n" for i in range(500)))
    run("init", str(tmp_path / "users.csv"), "-o", str(tmp_path / "d.yaml"))
    before = everything(tmp_path)
    assert run("check", str(tmp_path / "d.yaml")).code == 0
    assert everything(tmp_path) == before and list(temporary.iterdir()) == []


def test_analysts_still_get_noise_afterwards(shop):
    """What draws nothing is the rehearsal's alone."""
    check_schema(shop)
    with dpsql.connect(shop) as connection, connection.cursor() as cursor:
        found = {cursor.execute(f"SELECT COUNT(*) FROM users WHERE age > {age}").fetchall()[0][0] for age in range(20)}
    true = {exact(shop, f"SELECT count(*) FROM users WHERE age > {age}")[0] for age in range(20)}
    assert len(found - true) > 5


def test_a_changed_file_is_checked_as_it_is(run, shop):
    """Registered data that has changed is not served; the owner may look at it all the same."""
    run("query", str(shop), "SELECT COUNT(*) FROM users")
    with duckdb.connect(str(shop.parent / "shop.duckdb")) as db:
        db.execute("INSERT INTO users VALUES (7777, 30, 'f')")
    assert tables_of(check_schema(shop))["users"].rows == 1001
    assert run("query", str(shop), "SELECT COUNT(*) FROM users WHERE age > 3").code == 1


# --- the report ------------------------------------------------------------------------------------------------------


def test_the_first_line_says_for_whom_it_is(run, shop):
    assert run("check", str(shop)).out.splitlines()[0] == REPORT_HEADING
    assert "not to be published" in json.loads(run("check", str(shop), "--json").out)["for"]


def test_one_table(run, shop):
    told = json.loads(run("check", str(shop), "--table", "users", "--json").out)
    assert [table["name"] for table in told["tables"]] == ["users"]
    ran = run("check", str(shop), "--table", "user")
    assert ran.code == 1 and 'no table "user"' in ran.err


def test_the_schema_alone(run, shop):
    (shop.parent / "shop.duckdb").unlink()
    ran = run("check", str(shop), "--no-data")
    assert ran.code == 0 and "Budgets" in ran.out and REPORT_HEADING not in ran.out
    assert json.loads(run("check", str(shop), "--no-data", "--json").out)["tables"] == []


def test_json_and_text_have_the_same_findings(run, shop):
    told, text = json.loads(run("check", str(shop), "--json").out), run("check", str(shop)).out
    assert told["findings"] and all(f"- {one['where']}: {one['what']}" in text for one in told["findings"])


def test_values_steer_no_terminal_and_names_may_be_words(run, tmp_path):
    with duckdb.connect(str(tmp_path / "d.duckdb")) as db:
        db.execute('CREATE TABLE "user" (user_id BIGINT PRIMARY KEY, "order" INTEGER, "select" VARCHAR)')
        db.execute("INSERT INTO \"user\" SELECT i, i, 'v\x1b[31m' || i % 2 FROM range(1000) t(i)")
    (tmp_path / "d.yaml").write_text("""
dpsql: 1
engine: duckdb:///d.duckdb
privacy: {unit: user.user_id, budget: {epsilon: 4, delta: 1e-9}}
tables:
  user:
    unit: user_id
    unique: [user_id]
    columns: {user_id: {type: bigint}, order: {type: integer, bounds: [0, 1000]}, select: {type: text}}
""")
    ran = run("check", str(tmp_path / "d.yaml"))
    assert ran.code == 0 and "\x1b" not in ran.out + ran.err and "refused" not in ran.out
    assert 'SELECT SUM("order") FROM "user"' in ran.out and r"v\x1b[31m0" in ran.out


# --- findings --------------------------------------------------------------------------------------------------------


def found(report, level=None):
    return [(one.where, one.what) for one in report.findings if level is None or one.level is level]


def suggestions(report, where):
    return [one.try_ for one in report.findings if one.where == where and one.try_]


BROKEN = [
    ("unique: [order_id]", "unique: [order_id, kind]", "orders", "declared unique but is not"),
    ("age: {type: integer", "height: {type: integer", "users", 'no column "height"'),
    ("    unique: [user_id]\n    columns:\n      user_id: {type: bigint}", "    unique: [user_id]\n    columns:\n"
     "      user_id: {type: text}", None, None),
    ("  shops:\n", "  shops:\n    source: gone.parquet\n", "shops", "matches no file"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "table", "said"), BROKEN)
def test_data_that_is_not_as_declared_cannot_be_served(run, shop, old, new, table, said):
    path = change(shop, old, new)
    ran = run("check", path)
    if table is None:  # the loader has found it already
        assert ran.code == 1
        return
    assert ran.code == 3 and "Cannot be served (1)" in ran.out and said in ran.out
    assert found(check_schema(path), Severity.BROKEN)[0][0] == f"tables.{table}"


def test_all_that_is_broken_is_reported_at_once(run, shop):
    for old, new, table, _ in BROKEN:
        if table is not None:
            change(shop, old, new)
    assert {where for where, _ in found(check_schema(shop), Severity.BROKEN)} == {
        "tables.users",
        "tables.orders",
        "tables.shops",
    }


def test_a_missing_database_is_reported(run, shop):
    (shop.parent / "shop.duckdb").unlink()
    ran = run("check", str(shop))
    assert ran.code == 3 and "no database file" in ran.out


def test_lines_that_cannot_be_read_are_reported(run, tmp_path):
    (tmp_path / "u.csv").write_text("user_id,age\n1,2\n3\n")
    (tmp_path / "d.yaml").write_text("""
dpsql: 1
privacy: {unit: u.user_id, budget: {epsilon: 4, delta: 1e-9}}
tables: {u: {source: u.csv, unit: user_id, columns: {user_id: {type: bigint}, age: {type: integer}}}}
""")
    ran = run("check", str(tmp_path / "d.yaml"))
    assert ran.code == 3 and "line 3" in ran.out


def test_a_schema_that_does_not_load_is_an_error(run, shop):
    ran = run("check", change(shop, "bounds: [20, 60]", "bounds: [60, 20]"))
    assert ran.code == 1 and "are reversed" in ran.err


def test_what_should_be_mended_is_reported_by_the_exit_code(run, shop, report):
    assert run("check", str(shop)).code == 3
    mended = {where for where, _ in found(report, Severity.MEND)}
    assert {"tables.users.age", "tables.orders.unit", "tables.items.unit"} <= mended


def test_proposed_bounds_clip_little(shop, report):
    (proposed,) = suggestions(report, "tables.users.age")
    assert proposed == "bounds: [0, 100]"
    change(shop, "bounds: [20, 60]", proposed)
    mended = check_schema(shop)
    age = columns_of(tables_of(mended)["users"])["age"]
    assert age.below + age.above < 0.01 and suggestions(mended, "tables.users.age") == []


def test_bounds_that_are_too_wide_are_seen(shop):
    change(shop, "bounds: [20, 60]", "bounds: [0, 100000]")
    assert suggestions(check_schema(shop), "tables.users.age") == ["bounds: [0, 100]"]


def test_a_proposed_norm_makes_counts_better(shop):
    """What is lost and the noise, of all tables together."""

    def error(report):
        tables = tables_of(report)
        return sum(tables[name].norms[0].rows_lost + tables[name].norms[0].noise for name in ("orders", "items"))

    change(shop, "epsilon: 0.5", "epsilon: 3")
    before = check_schema(shop)
    (proposed,) = suggestions(before, "privacy.contributions.rows")
    change(shop, "rows: 4", proposed)
    assert error(check_schema(shop)) < error(before)


def test_values_nullable_and_grid_are_proposed(report):
    assert suggestions(report, "tables.orders.kind") == ["max_length: 10", "values: [k0, k1, k2]"]
    assert suggestions(report, "tables.users.sex") == ["values: … with those that are missing", "nullable: true"]
    assert "grid: 0.01" in suggestions(report, "tables.orders.price")
    from_data = {one.try_: one.from_data for one in report.findings}
    assert from_data["values: [k0, k1, k2]"] and from_data["grid: 0.01"] and not from_data["nullable: true"]


def test_rare_values_are_not_proposed(shop):
    with duckdb.connect(str(shop.parent / "shop.duckdb")) as db:
        db.execute("UPDATE orders SET kind = 'rare' WHERE order_id < 5")
    assert suggestions(check_schema(shop), "tables.orders.kind")[-1] == "values: [k0, k1, k2]"


@pytest.mark.parametrize("written", ["", "  contributions: auto\n"])
def test_automatic_contributions_are_nothing_to_mend(shop, written):
    change(shop, "  contributions: {rows: 4, groups: 2}\n", written)
    change(shop, "query: {epsilon: 0.5", "query: {epsilon: 3")
    report = check_schema(shop)
    assert not [where for where, _ in found(report, Severity.MEND) if where.startswith("privacy.contributions")]
    orders = tables_of(report)["orders"]
    assert orders.questions[0].refused is None and orders.norms == () and orders.automatic is None
    assert not [one for one in check_schema(shop, data=False).findings if "contributions" in one.where]


def test_automatic_contributions_of_too_few_units_are_to_mend(shop):
    change(shop, "  contributions: {rows: 4, groups: 2}\n", "")
    change(shop, "query: {epsilon: 0.5", "query: {epsilon: 0.01")
    report = check_schema(shop)
    assert any(
        where == "privacy.contributions" and "too few units" in what for where, what in found(report, Severity.MEND)
    )


def test_a_count_that_is_off_by_more_than_its_bar_is_to_mend(shop):
    """However small it is: an analyst could not see it."""
    with duckdb.connect(str(shop.parent / "shop.duckdb")) as db:
        db.execute("INSERT INTO orders SELECT 10000 + i, 1000 + i // 2, 50, 'k0', TIMESTAMP '2024-01-02' "
                   "FROM range(40000) t(i)")  # fmt: skip
        db.execute("INSERT INTO users SELECT 1000 + i, 30, 'f' FROM range(20000) t(i)")
        db.execute("INSERT INTO orders SELECT 100000 + i, i % 20, 50, 'k0', TIMESTAMP '2024-01-02' "
                   "FROM range(2000) t(i)")  # fmt: skip
    report = check_schema(shop)
    count = tables_of(report)["orders"].questions[0]
    assert count.noise < count.lost < 0.1 and not report.is_ok
    assert any("SELECT COUNT(*) FROM orders is off by" in what for _, what in found(report, Severity.MEND))
    automatic = tables_of(report)["orders"].automatic
    assert automatic is not None and automatic.refused is None and automatic.lost is not None


def test_rows_as_units_beside_an_id_that_repeats_are_to_mend(shop):
    text = shop.read_text()
    start, end = text.index("  users:"), text.index("  shops:")
    orders = "  orders:\n    unit: row\n    columns: {user_id: {type: bigint}, order_id: {type: bigint}}\n"
    text = (text[:start] + orders + text[end:]).replace("unit: users.user_id", "unit: row")
    shop.write_text(text)
    with duckdb.connect(str(shop.parent / "shop.duckdb")) as db:
        db.execute("INSERT INTO orders SELECT 10000 + i, i % 1000, 50, 'k0', NULL FROM range(4000) t(i)")
    report = check_schema(shop)
    ((where, what),) = [pair for pair in found(report, Severity.MEND) if pair[0].endswith(".unit")]
    assert where == "tables.orders.unit" and "user_id" in what and "order_id" not in what
    assert suggestions(report, "tables.orders.unit") == ["unit: user_id"]


def test_budgets_that_promise_more_than_there_is_are_reported(shop):
    two = "analysts:\n  a: {budget: {epsilon: 3, delta: 1e-7}}\n  b: {budget: {epsilon: 2, delta: 1e-7}}\n"
    change(shop, "tables:", f"{two}tables:")
    assert any(where == "analysts" and "epsilon 5" in what for where, what in found(check_schema(shop)))


def test_a_delta_near_one_in_all_units_is_to_mend(shop):
    change(shop, "budget: {epsilon: 4, delta: 1e-6}", "budget: {epsilon: 4, delta: 0.01}")
    assert "privacy.budget" in {where for where, _ in found(check_schema(shop), Severity.MEND)}


def test_pure_differential_privacy_is_checked_too(shop):
    change(shop, "budget: {epsilon: 4, delta: 1e-6}", "budget: {epsilon: 4, delta: 0}")
    change(shop, "query: {epsilon: 0.5, delta: 1e-8}", "query: {epsilon: 0.5, delta: 0}")
    orders = tables_of(check_schema(shop))["orders"]
    assert orders.keys == () and orders.questions[0].noise > 0


def test_rows_that_are_their_own_units(run, tmp_path):
    (tmp_path / "d.yaml").write_text("""
dpsql: 1
engine: duckdb:///d.duckdb
privacy: {unit: row, budget: {epsilon: 4, delta: 1e-9}}
tables: {t: {unit: row, columns: {x: {type: integer, bounds: [0, 9]}, k: {type: text}}}}
""")
    with duckdb.connect(str(tmp_path / "d.duckdb")) as db:
        db.execute("CREATE TABLE t AS SELECT (i % 10)::INTEGER AS x, 'k' || i % 2 AS k FROM range(5000) t(i)")
    (table,) = check_schema(tmp_path / "d.yaml").tables
    assert (table.units, table.without_unit, table.norms) == (5000, 0, ())
    assert table.keys[0].shown == 2 and table.questions[0].exact == 5000


def test_an_empty_table(run, shop):
    with duckdb.connect(str(shop.parent / "shop.duckdb")) as db:
        db.execute("DELETE FROM orders; DELETE FROM users; DELETE FROM items")
    ran = run("check", str(shop))
    assert ran.code == 0 and "0 rows, 0 units" in ran.out


# --- from data to answers --------------------------------------------------------------------------------------------


def test_a_draft_is_checked_decided_and_queried(run, tmp_path, silent):
    """As the owner would go on: draft, check, take what is proposed, check again, ask."""
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as db:
        db.execute(DATA)
    target = tmp_path / "draft.yaml"
    assert run("init", str(tmp_path / "shop.duckdb"), "-o", str(target)).code == 0
    ran = run("check", str(target))
    assert "Cannot be served" not in ran.out
    text = target.read_text()
    for one in check_schema(target).findings:
        place = re.fullmatch(r"tables\.(\w+)\.(\w+)", one.where)
        if place and one.try_ and one.try_.startswith("bounds"):
            text = re.sub(rf"(\b{place[2]}: {{type: [^}}]*)}}", rf"\1, {one.try_}}}", text)
    target.write_text(text)
    assert load_schema(target).table("orders").column("price").domain.is_bounded
    ran = run("query", str(target), "SELECT SUM(weight) AS w FROM items", "--csv")
    assert ran.code == 0 and float(ran.out.splitlines()[1]) > 0
