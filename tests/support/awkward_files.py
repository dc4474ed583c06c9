"""Files as people have them: CSV as programs of all kinds write it, Parquet and DuckDB with odd types and names.

Each has the table that it should become, with its rows and columns, or the reason why it is left out.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import duckdb

ROWS = 60


@dataclass(frozen=True)
class AwkwardFile:
    """`columns` are those of the draft, with their types; `why` is a part of the reason for leaving the file out."""

    name: str
    content: bytes | str
    columns: dict[str, str] | None = None
    why: str = ""
    rows: int = ROWS
    table: str = ""

    @property
    def table_name(self) -> str:
        return self.table or self.name.partition(".")[0]


def lines(*heads: str, row: Callable[[int], str], end: str = "\n") -> str:
    return end.join([*heads, *(row(i) for i in range(ROWS))]) + end


def in_turn(*ends: str) -> str:
    return "".join(f"{i},{i * 2}{ends[i % len(ends)]}" for i in range(ROWS))


NUMBERS = {"id": "bigint", "v": "bigint"}
TOWNS = {"town": "text", "n": "bigint", "m": "bigint"}


def town(i: int) -> str:
    return f"Orléans,{i},{i % 7}"


CSV_FILES = (
    # names
    AwkwardFile("pandas_index.csv", lines(",name,age,size", row=lambda i: f"{i},n{i % 5},{20 + i},{i}.5"),
                {"column1": "bigint", "name": "text", "age": "bigint", "size": "double"}),
    AwkwardFile("r_row_names.csv", lines('"","mpg","cyl"', row=lambda i: f'"Car {i}",{i}.5,{i % 3}'),
                {"column1": "text", "mpg": "double", "cyl": "bigint"}),
    AwkwardFile("odd_names.csv", lines('"a ""b""",Größe (cm), padded ,select,count,share (%),日本,user.id',
                                       row=lambda i: f"x{i % 3},{i},{i % 5},{i},{i % 4},{i},{i},{i % 9}"),
                {"a _b_": "text", "Größe (cm)": "bigint", "padded": "bigint", "select": "bigint", "count": "bigint",
                 "share (%)": "bigint", "日本": "bigint", "user.id": "bigint"}),
    AwkwardFile("reserved.csv", lines("order,group,from,uid,key,value,row", row=lambda i: ",".join([str(i)] * 7)),
                dict.fromkeys(("order", "group", "from", "uid", "key", "value", "row"), "bigint")),
    AwkwardFile("twice.csv", lines("id,score,score,Score", row=lambda i: f"{i},{i % 5},{i % 7},{i}"),
                {"id": "bigint", "score": "bigint", "score_1": "bigint", "Score_2": "bigint"}),
    AwkwardFile("long_name.csv", lines(f"id,v,{'x' * 400}", row=lambda i: f"{i},{i},{i % 3}"),
                {"id": "bigint", "v": "bigint", "x" * 255: "bigint"}),
    AwkwardFile("name_of_lines.csv", lines('id,v,"two\nlines"', row=lambda i: f"{i},{i},{i % 3}"),
                {"id": "bigint", "v": "bigint", "two_lines": "bigint"}),
    AwkwardFile("trailing_comma.csv", lines("id,v,", row=lambda i: f"{i},{i},"),
                {"id": "bigint", "v": "bigint", "column3": "text"}),
    AwkwardFile("dotted.name (1).csv", lines("id,v", row=lambda i: f"{i},{i}"), NUMBERS, table="dotted_name (1)"),
    AwkwardFile("no_header.csv", lines(row=lambda i: f"{i},{i % 3},{i}.5"),
                {"column1": "bigint", "column2": "bigint", "column3": "double"}),
    # one column of numbers
    AwkwardFile("planes.csv", lines("tailnum,year,maker",
                                    row=lambda i: f"N{10000 + i}{'UW'[i % 2]},{1990 + i % 30},{'AB'[i % 2]}us"),
                {"tailnum": "text", "year": "bigint", "maker": "text"}),
    AwkwardFile("letters.csv", lines("s,v,g", row=lambda i: f"s{i},{i},{'xyz'[i % 3]}"),
                {"s": "text", "v": "bigint", "g": "text"}),
    AwkwardFile("mails.csv", lines("mail,amount", row=lambda i: f"p{i}@example.org,{i}"),
                {"mail": "text", "amount": "bigint"}),
    AwkwardFile("hashes.csv", lines("h,n", row=lambda i: f"{hashlib.sha256(b'%d' % i).hexdigest()},{i}"),
                {"h": "text", "n": "bigint"}),
    AwkwardFile("costs.csv", lines("ward,cost", row=lambda i: f"w{i % 3},{i}"), {"ward": "text", "cost": "bigint"}),
    AwkwardFile("places.csv", lines("person_id,zip", row=lambda i: f"{i:05},0{i:04}"),
                {"person_id": "text", "zip": "text"}),
    AwkwardFile("codes_alone.csv", lines("plate,stop", row=lambda i: f"{i:05},0{i:04}"),
                {"plate": "text", "stop": "text"}),
    AwkwardFile("odd_numbers.csv", lines('"Größe (cm)","Anteil (%)"', row=lambda i: f"{i},{i * 2}"),
                {"Größe (cm)": "bigint", "Anteil (%)": "bigint"}),
    AwkwardFile("header_only.csv", "id,v\n", {"id": "text", "v": "text"}, rows=0),
    # lines, quotes, delimiters
    AwkwardFile("bom.csv", b"\xef\xbb\xbf" + lines("id,v", row=lambda i: f"{i},{i}").encode(), NUMBERS),
    AwkwardFile("mixed_line_ends.csv", "id,v\r\n" + in_turn("\n", "\r\n"), NUMBERS),
    AwkwardFile("all_line_ends.csv", "id,v\r\n" + in_turn("\r", "\n", "\r\n"), NUMBERS),
    AwkwardFile("old_mac.csv", lines("id,v", row=lambda i: f"{i},{i}", end="\r"), NUMBERS),
    AwkwardFile("quotes.csv", lines("id,v,note", row=lambda i: f'{i},{i},"he said ""a, {i % 3}""\nand left"'),
                {**NUMBERS, "note": "text"}),
    AwkwardFile("quotes_crlf.csv", lines("id,v,note", row=lambda i: f'{i},{i},"a\nb"', end="\r\n"),
                {**NUMBERS, "note": "text"}),
    AwkwardFile("single_quotes.csv", lines("id,v,note", row=lambda i: f"{i},{i},'a, {i % 4}'"),
                {**NUMBERS, "note": "text"}),
    AwkwardFile("backslash.csv", lines("id,v,note", row=lambda i: f'{i},{i},"say \\"hi\\", {i % 4}"'),
                {**NUMBERS, "note": "text"}),
    AwkwardFile("inches.csv", lines("id,v,size", row=lambda i: f'{i},{i},{i % 4}" pipe'), {**NUMBERS, "size": "text"}),
    AwkwardFile("semicolons.csv", lines("id;v;preis", row=lambda i: f"{i};{i};{i},5"),
                {**NUMBERS, "preis": "double"}),
    AwkwardFile("german.csv", lines("id;v;preis;geburt", row=lambda i: f"{i};{i};1.{i:03},25;{i % 28 + 1:02}.03.1980"),
                {**NUMBERS, "preis": "double", "geburt": "date"}),
    AwkwardFile("tabs.tsv", lines("id\tv", row=lambda i: f"{i}\t{i}"), NUMBERS),
    AwkwardFile("tabs_in.csv", lines("id\tv\tx", row=lambda i: f"{i}\t{i}\t1,5"), {**NUMBERS, "x": "double"}),
    AwkwardFile("pipes.csv", lines("id|v", row=lambda i: f"{i}|{i}"), NUMBERS),
    AwkwardFile("preamble.csv", lines("A report", "made in 2024", "", "id,v", row=lambda i: f"{i},{i}"), NUMBERS),
    AwkwardFile("comment.csv", lines("# units: cm", "id,v", row=lambda i: f"{i},{i}"), NUMBERS),
    AwkwardFile("blank_lines.csv", lines("id,v", row=lambda i: f"{i},{i}" + "\n" * (i % 10 == 0)), NUMBERS),
    AwkwardFile("packed.csv.gz", gzip.compress(lines("id,v", row=lambda i: f"{i},{i}").encode()), NUMBERS),
    # fields
    AwkwardFile("dates.csv", lines("id,v,iso,german,american,named,at",
                                   row=lambda i: f"{i},{i},2024-03-{i % 28 + 1:02},{i % 28 + 1:02}.03.2024,"
                                                 f"3/{i % 28 + 1}/2024,{i % 28 + 1} Mar 2024,2024-03-01 10:00:{i:02}"),
                {**NUMBERS, "iso": "date", "german": "date", "american": "date", "named": "date", "at": "timestamp"}),
    AwkwardFile("empty_column.csv", lines("id,v,nothing,missing_one", row=lambda i: f"{i},{i},,NA"),
                {**NUMBERS, "nothing": "text", "missing_one": "text"}),
    AwkwardFile("ragged.csv", lines("id,v,x", row=lambda i: f"{i},{i}" if i == 7 else f"{i},{i},x"),
                why='the lines of "ragged.csv" have different numbers of fields; look at record 9'),
    AwkwardFile("too_wide.csv", lines("id,v,x", row=lambda i: f"{i},{i},x,y" if i == 7 else f"{i},{i},x"),
                why='the lines of "too_wide.csv" have different numbers of fields; look at record 9'),
    AwkwardFile("huge_field.csv", lines("id,v,x", row=lambda i: f"{i},{i}," + "x" * (3_000_000 if i == 7 else 3)),
                {**NUMBERS, "x": "text"}),
    AwkwardFile("huge_numbers.csv", lines("id,v,x,y", row=lambda i: f"{i},{i},{10**25},{1e300 if i % 9 else 'inf'}"),
                {**NUMBERS, "x": "hugeint", "y": "double"}),
    AwkwardFile("truths.csv", lines("id,v,ok", row=lambda i: f"{i},{i},{'true' if i % 2 else 'false'}"),
                {**NUMBERS, "ok": "boolean"}),
    AwkwardFile("codes.csv", lines("id,v,zip", row=lambda i: f"{i},{i},0{i:04}"), {**NUMBERS, "zip": "text"}),
    # encodings
    AwkwardFile("latin.csv", lines("town,n,m", row=town).encode("latin-1"), TOWNS),
    AwkwardFile("windows.csv", lines("town,n,m", row=lambda i: f"5 €,{i},{i}").encode("cp1252"), TOWNS),
    AwkwardFile("utf16.csv", lines("town,n,m", row=town).encode("utf-16"), TOWNS),
    AwkwardFile("bytes.csv", b"town,n,m\n" + b"".join(b"a\x81\xff,%d,%d\n" % (i, i) for i in range(ROWS)), TOWNS),
    AwkwardFile("nul.csv", b"town,n,m\n" + b"".join(b"a\x00b,%d,%d\n" % (i, i) for i in range(ROWS)), TOWNS),
    # nothing to serve
    AwkwardFile("empty.csv", "", why='"empty.csv" is empty'),
    AwkwardFile("bom_only.csv", b"\xef\xbb\xbf", why='"bom_only.csv" is empty'),
    AwkwardFile("one_row.csv", "Smith,flu\n", why='whether the first line of "one_row.csv" names its columns'),
    AwkwardFile("words.csv", lines("ward,word", row=lambda i: f"w{i % 3},x{i}"),
                why='whether the first line of "words.csv" names its columns'),
    AwkwardFile("cut.csv.gz", gzip.compress(lines("id,v", row=lambda i: f"{i},{i}").encode())[:-20],
                why='"cut.csv.gz" cannot be read'),
    AwkwardFile("broken.parquet", b"PAR1 and no more", why='"broken.parquet" cannot be read'),
)  # fmt: skip

PARQUET = '''
SELECT i AS id, CAST(i % 5 AS DECIMAL(38, 4)) AS wide, CAST(i AS DECIMAL(9, 2)) AS amount, i::UTINYINT AS tiny,
    i::UINTEGER AS u32, i::UBIGINT AS u64, i::FLOAT AS f32, 'x' || (i % 3) AS word,
    ('a' || (i % 2))::ENUM('a0', 'a1') AS choice, '00000000-0000-0000-0000-000000000001'::UUID AS uid,
    'blob'::BLOB AS raw, [i, i + 1] AS list, {'a': i} AS struct, MAP {'k': i} AS map, i::BIT AS bits,
    TIMESTAMPTZ '2024-01-01 00:00:00+02' AS zoned, TIMESTAMP_NS '2024-01-01 00:00:00' AS nanos,
    DATE '2024-01-01' AS day, TIME '10:00' AS clock, INTERVAL 1 DAY AS span, NULL::INTEGER AS nothing,
    i::HUGEINT AS huge, i % 2 = 0 AS ok, i AS "a ""b""", i AS " blank ", i AS "Größe (cm)", i AS "select"
FROM range(60) t(i)
'''
PARQUET_COLUMNS = {
    "id": "bigint", "wide": "decimal(38,4)", "amount": "decimal(9,2)", "tiny": "smallint", "u32": "bigint",
    "u64": "hugeint", "f32": "real", "word": "text", "choice": "text", "uid": "uuid", "zoned": "timestamptz",
    "nanos": "timestamp", "day": "date", "clock": "time", "nothing": "integer", "huge": "double",
    "ok": "boolean", "bits": "text", "Größe (cm)": "bigint", "select": "bigint",
}  # fmt: skip

DUCKDB = '''
CREATE TABLE plain (id BIGINT PRIMARY KEY, price DECIMAL(9, 2), twice DECIMAL(9, 2) AS (price * 2),
                    choice ENUM('a', 'b'), tags VARCHAR[]);
INSERT INTO plain SELECT i, i, 'a', ['x'] FROM range(60) t(i);
CREATE TABLE "Odd table (1)" AS SELECT i AS "Größe (cm)", i AS "order", i AS "a.b" FROM range(60) t(i);
CREATE TABLE "select" AS SELECT i AS id FROM range(60) t(i);
CREATE TABLE "a.b" AS SELECT i AS id FROM range(60) t(i);
CREATE TABLE "say ""hi""" AS SELECT i AS id FROM range(60) t(i);
CREATE TABLE lists AS SELECT [i] AS id FROM range(60) t(i);
CREATE TABLE nothing (id BIGINT, v VARCHAR);
CREATE SCHEMA raw;
CREATE TABLE raw.plain AS SELECT i AS id FROM range(60) t(i);
CREATE SCHEMA "odd schema";
CREATE TABLE "odd schema"."odd table" AS SELECT i AS id FROM range(60) t(i);
CREATE TABLE folded (name VARCHAR COLLATE NOCASE, id BIGINT);
CREATE TABLE numbers AS SELECT i AS id, i::BIGNUM AS big, i::UHUGEINT AS vast FROM range(60) t(i);
CREATE VIEW seen AS SELECT * FROM plain;
'''


def write_awkward_files(folder: Path) -> None:
    folder.mkdir()
    for file in CSV_FILES:
        content = file.content.encode() if isinstance(file.content, str) else file.content
        (folder / file.name).write_bytes(content)
    with duckdb.connect() as db:
        db.execute(f"COPY ({PARQUET}) TO '{folder / 'types.parquet'}' (FORMAT parquet)")
        db.execute(f"COPY (SELECT [1] AS list) TO '{folder / 'lists_only.parquet'}' (FORMAT parquet)")
        for part in range(2):
            (folder / "parts").mkdir(exist_ok=True)
            db.execute(f"COPY (SELECT i AS id FROM range(30) t(i)) TO '{folder / 'parts' / f'{part}.parquet'}'")
    with duckdb.connect(str(folder / "tables.duckdb")) as db:
        db.execute(DUCKDB)
