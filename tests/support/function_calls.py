"""A call of every function over the columns of `tests.support.expressions`, and others made from them at random."""

from __future__ import annotations

import re
from random import Random

from dpsql.compiler.functions.calendar import EXTRACTIONS, TIME_PARTS, TRUNCATIONS
from dpsql.compiler.functions.date_formats import DIRECTIVES
from tests.support.expressions import POOLS

ONE_NUMBER = ("abs", "floor", "ceil", "round", "trunc", "sign", "sqrt", "cbrt", "exp", "ln", "log", "log10", "log2",
              "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "cot",
              "degrees", "radians", "-")  # fmt: skip
NUMBERS = ("i", "n", "s", "x", "w", "y", "z", "r", "c", "m", "x * 10", "w - w", "y - 5")
ONE_TEXT = ("lower", "upper", "initcap", "trim", "ltrim", "rtrim", "length", "octet_length", "reverse", "ascii",
            "strlen", "lengthb", "bit_length", "ord", "unicode")  # fmt: skip
TWO_TEXTS = ("strpos", "starts_with", "ends_with", "contains")
DATES = ("e", "f", "p", "q", "o", "p::date", "q + INTERVAL '1 month'")
FORMATS = ("YYYY-MM", "YYYY-MM-DD HH24:MI:SS", "Mon YYYY", "FMMonth", "Month", "DAY", "Dy", "D", "ID", "Q", "YYYY-Q",
           "IYYY-IW", "YYYY-IW", "MM IW", "WW W", "HH12:MI AM", "US", "MS", "DDD", "FMDD.FMMM.YY", "MM/DD",
           '"Q"Q "of" YYYY', "pm", "")  # fmt: skip
ZONES = ("Europe/Berlin", "America/New_York", "Pacific/Kiritimati", "Pacific/Apia", "Asia/Manila", "America/Juneau",
         "Asia/Kathmandu", "Africa/Monrovia", "Etc/GMT+12", "Antarctica/Troll", "Australia/Lord_Howe")  # fmt: skip
PATTERNS = (
    "a",
    "^a.b$",
    "[a-c]+",
    "(a|b)*",
    r"\d{2,4}-\d+",
    "[[:alpha:]]",
    "[^a]",
    r"\\",
    "a+?",
    r"\(",
    "x{12}",
    ".",
    "",
)

EXPRESSIONS = [
    *(f"{f}({x})" for f in ONE_NUMBER for x in NUMBERS),
    *(f"{f}({x}, {d})" for f in ("round", "trunc") for x in NUMBERS for d in (-15, -1, 1, 15)),
    *(f"power({x}, {y})" for x in NUMBERS for y in ("2", "3", "0.5", "-1", "0", "n", "x", "1000")),
    *(f"{f}({x}, {y})" for f in ("atan2", "mod", "div") for x in ("i", "n", "m") for y in ("i", "n", "3")),
    *(f"atan2({x}, {y})" for x in ("w", "x") for y in ("w", "x")),
    *(f"({x} {op} {y})" for op in ("&", "|", "#", "+", "-", "*", "/", "%") for x in ("i", "n", "m") for y in ("i",
    "7", "m")),
    *(f"({x} {op} {n})" for x in ("i", "m") for op in ("<<", ">>") for n in (1, 5, 62)), "~n", "~m", "n >> 0",
    *(f"{f}({x})" for f in ("isnan", "isinf", "isfinite") for x in ("w", "y")),
    *(f"width_bucket({x}, array[-0.1, 0.3, 7])" for x in ("n", "w", "y")),
    *(f"width_bucket({x}, {lo}, {hi}, 7)" for x in NUMBERS for lo, hi in (("0", "10"), ("-0.1", "0.3"))),
    *(f"log(3, {x})" for x in NUMBERS),
    *(f"{f}({x}, 5)" for f in ("greatest", "least", "coalesce", "nullif") for x in NUMBERS),
    *(f"{f}({x})" for f in ONE_TEXT for x in ("t", "k", "t || k")),
    *(f"{f}({x}, {y})" for f in TWO_TEXTS for x in ("t", "k") for y in ("t", "k", "'a'", "''")),
    *(f"{f}({x}, {n})" for f in ("left", "right") for x in ("t", "k") for n in (0, 1, 3, -1, -3, 10000, -10000)),
    *(f"substring({x}, {n}{rest})" for x in ("t", "k") for n in (1, 2, 10000) for rest in ("", ", 1", ", 3")),
    *(f"{f}({x}, {n}, {c})" for f in ("lpad", "rpad") for x in ("t", "k") for n in (0, 2, 9) for c in ("'0'", "'é-'")),
    *(f"{f}({x}, 'ab')" for f in ("trim", "ltrim", "rtrim") for x in ("t", "k")),
    *(f"lpad({x}, 20)" for x in ("t", "k")),
    *(f"replace({x}, {a}, {b})" for x in ("t", "k") for a in ("'a'", "'aa'", "' '") for b in ("''", "'xyz'", "'é'")),
    *(f"translate({x}, 'ab-', 'é')" for x in ("t", "k")),
    *(f"repeat({x}, {n})" for x in ("t", "k") for n in (0, 1, 50)),
    *(f"split_part({x}, {d}, {n})" for x in ("t", "k") for d in ("'-'", "'a'", "'--'") for n in (1, 2, -1, 9)),
    *(f"{f}({x}, '-')[{n}]" for x in ("t", "k")
      for f, n in (("string_split", 1), ("string_to_array", 2), ("str_split", 9))),
    "list_extract(split(k, '--'), 1)",
    *(f"{f}(string_split({x}, {d}))" for x in ("t", "k") for d in ("'-'", "'aa'")
      for f in ("array_length", "len", "cardinality")),
    *(f"(regexp_match({x}, '{p}'))[1]" for x in ("t", "k") for p in ("(a|b)*", ".")),
    "list_contains(['a', 'b', NULL], t)", "array_contains([1, 2], n)", "mid(t, 2, 3)", "prefix(t, 'a')", "suffix(t, k)",
    *(f"{f}({x})" for f in ("epoch_ms", "epoch_us") for x in ("e", "q", "o")), "datetrunc('month', q)",
    *(f"concat({x}, {y})" for x in ("t", "k", "n", "b") for y in ("t", "'!'", "e", "y")),
    *(f"concat_ws('-', {x}, {y})" for x in ("t", "k") for y in ("t", "k", "'x'")),
    *(f"({x} {op} {p})" for x in ("t", "k") for op in ("LIKE", "ILIKE", "NOT LIKE", "SIMILAR TO")
      for p in ("'a%'", "'%_b'", r"'a\%b'", r"'\\'", "''", "'É'", "'a!%b' ESCAPE '!'", "'(a|b)%'")
      if not (op == "SIMILAR TO" and "ESCAPE" in p)),
    *(f"({x} {op} '{p}')" for x in ("t", "k") for op in ("~", "~*", "!~") for p in PATTERNS),
    *(f"regexp_replace({x}, '{p}', {r}{g})" for x in ("t", "k") for p in PATTERNS for r in ("''", "'<#>'", r"'\&\&'")
      for g in ("", ", 'g'", ", 'gi'")),
    r"regexp_replace(t, '(a)(b)', '\2\1\\', 'g')",
    *(f"regexp_substr({x}, '{p}')" for x in ("t", "k") for p in PATTERNS),
    "regexp_extract(t, '([a-z]+)-([a-z]+)', 2)", "substring(t FROM '[a-z]+')", "substring(t FROM '(.)-')",
    *(f"extract({part} FROM {x})" for part in EXTRACTIONS for x in DATES),
    *(f"extract({part} FROM h)" for part in TIME_PARTS),
    *(f"date_trunc('{part}', {x})" for part in TRUNCATIONS for x in DATES),
    *(f"{f}({x})" for f in ("dayname", "monthname", "last_day", "year", "dayofweek", "epoch") for x in DATES),
    *(f"to_char({x}, '{f}')" for f in FORMATS for x in DATES),
    *(f"strftime({x}, '{d}')" for d in (*DIRECTIVES, "%Y-%m-%d", "100%% %B", "") for x in ("p", "f", "q")),
    *(f"{f}({x}, {fmt})" for x in ("t", "k") for f, fmt in (("to_date", "'YYYY-MM-DD'"), ("to_date", "'DD/MM/YYYY'"),
      ("to_timestamp", "'Mon YYYY'"), ("strptime", "'%Y-%m-%d'"), ("strptime", "'%H'"))),
    *(f"({x} {op} INTERVAL '{span}')" for x in DATES for op in "+-" for span in
      ("1 day", "1 month", "1 year 2 months 3 days", "9999 years", "25 hours", "0 days", "1 week", "00:00:00.000001")),
    *(f"({d} {op} {n})" for d in ("e", "f") for op in "+-" for n in ("i", "n", "1", "3652059", "9223372036854775807")),
    *(f"({a} - {b})" for a in ("e", "f") for b in ("e", "f", "'2020-06-01'")),
    *(f"{f}('{unit}', {a}, {b})" for f in ("date_diff", "date_sub") for unit in TRUNCATIONS
      for a, b in (("e", "f"), ("p", "q"), ("q", "q"), ("f", "q"), ("f", "f"), ("o", "p"))),
    *(f"extract({part} FROM {a} - {b})" for part in ("epoch", "day") for a, b in (("p", "q"), ("q", "q"), ("q", "p"))),
    *(f"extract({part} FROM {a} - {b})" for part in ("hour", "minute", "second")
      for a, b in (("p", "q"), ("q", "q"), ("q", "p"), ("o", "f"), ("e", "p"))),
    *(f"({a} - {b} {op} INTERVAL '{span}')" for a, b in (("p", "q"), ("q", "p"), ("o", "p"), ("e", "o"))
      for op in ("<", "=", ">=") for span in ("30 days", "1 month", "-2 hours", "9999 years", "0 days")),
    *(f"(age({a}, {b}) {op} INTERVAL '{span}')" for a, b in (("p", "q"), ("q", "p"), ("e", "f"), ("f", "o"))
      for op in ("<", ">=") for span in ("1 year", "18 years", "1 month 3 days", "-1 day")),
    "p - q BETWEEN INTERVAL '1 day' AND INTERVAL '1 week'", "q - p > '2 days'", "coalesce(q - p, INTERVAL '0 days')",
    "greatest(q - o, INTERVAL '1 hour')", "extract(epoch FROM CASE WHEN b THEN q - p END)", "p - q", "q - q",
    "extract(hour FROM coalesce(q - q, INTERVAL '1 day'))", "extract(day FROM coalesce(q - q, INTERVAL '1 day'))",
    "p - q IN (INTERVAL '1 day', INTERVAL '2 days')", "nullif(p - q, INTERVAL '1 day') IS NULL",
    *(f"extract({part} FROM age({a}, {b}))" for part in ("year", "month")
      for a, b in (("p", "q"), ("q", "p"), ("f", "q"), ("q", "f"), ("e", "p"))),
    *(f"time_bucket(INTERVAL '{w}', {x})" for x in DATES for w in
      ("15 minutes", "7 days", "1 month", "5 months", "100 years", "13 hours", "1 microsecond")),
    *(f"date_bin('{w}', {x}, TIMESTAMP '{origin}')" for x in DATES for w in ("6 hours", "3 days", "1 microsecond")
      for origin in ("2001-01-01", "9999-12-31 23:00", "0001-01-01 00:00:01", "2020-02-02 05:00")),
    *(f"({x} {op} {n} * INTERVAL '{w}')" for x in ("e", "p", "q", "o") for op in "+-" for n in ("i", "n", "m")
      for w in ("1 day", "2 weeks")),
    *(f"(date_trunc('day', {x}) - extract(dow FROM {x})::int * INTERVAL '1 day')" for x in ("p", "q", "f", "o")),
    *(f"({x} - extract(dow FROM {x}) * INTERVAL '1 day')" for x in ("p", "q", "f", "o")),
    "date_trunc('day', q) + (-extract(dow FROM q) * INTERVAL '1 day')", "time_bucket('6 hours', q, '2001-01-01')",
    *(f"make_date({y}, {m}, {d})" for y in ("i", "n", "2020") for m in ("i", "n", "2") for d in ("i", "n", "30")),
    *(f"to_timestamp({x})" for x in NUMBERS),
    *(f"CAST({x} AS {to})" for x, to in (("t", "int"), ("t", "double precision"), ("t", "date"), ("t", "timestamp"),
      ("t", "timestamptz"), ("t", "time"), ("t", "boolean"), ("t", "uuid"), ("t", "varchar(3)"), ("t", "numeric"),
      ("t", "numeric(6,2)"), ("x", "int"), ("w", "int"), ("x", "real"), ("x", "numeric(38,10)"), ("x", "text"), ("i",
      "boolean"),
      ("b", "int"), ("b", "text"), ("i", "smallint"), ("p", "date"), ("p", "time"), ("o", "time"), ("o", "date"),
      ("e", "timestamp"),
      ("e", "timestamptz"), ("o", "timestamp"), ("p", "text"), ("h", "text"), ("u", "text"), ("q", "timestamptz"),
      ("f", "timestamptz"))),
    "o AT TIME ZONE 'UTC'", "p AT TIME ZONE 'UTC'", "timezone('UTC', o)", "pi()",
    *(f"({x}) AT TIME ZONE '{zone}'" for x in DATES for zone in ZONES),
    *(f"date_trunc('day', q AT TIME ZONE 'UTC' AT TIME ZONE '{zone}')" for zone in ZONES),
    *(f"CAST(q AT TIME ZONE 'utc' AT TIME ZONE '{zone}' AS date)" for zone in ZONES),
    "extract(hour FROM o AT TIME ZONE 'Asia/Kathmandu')", "to_char(o AT TIME ZONE 'america/new_york', 'YYYY-MM')",
    "CASE WHEN x > 100 THEN 100 WHEN x < 0 THEN 0 ELSE x END",
    "CASE WHEN i IS NULL THEN 0 WHEN i > 9 THEN 9 WHEN i < 0 THEN 0 ELSE i END",
    "CASE WHEN x * 2 > 100 THEN 100 WHEN x * 2 < 0 OR x IS NULL THEN 0 ELSE x * 2 END", "greatest(least(x, 100), 0)",
    "CASE WHEN n IN (1, 2) THEN 5 ELSE n END", "CASE WHEN m = 3 THEN 0 WHEN NOT (m <> 2) THEN 1 ELSE m END",
    "if(b, n, 3)", "iff(b, 1, 2)", "nvl2(n, 1, 2)", "ifnull(n, 7)", "n IS DISTINCT FROM m", "n IS NOT DISTINCT FROM 3",
    "n BETWEEN SYMMETRIC 5 AND -1", "n IN (m, 3, NULL)", "(n, k) = (1, 'a')", "(n, k) IN ((1, 'a'), (2, ''))",
    "n = ANY(ARRAY[1, 2])",
    "n <> ALL(ARRAY[1, 2])", "t LIKE ANY(ARRAY['a%', 'b%'])", "b IS UNKNOWN", "b IS NOT TRUE", "h > '12:00'", "o > p",
    "o = e",
]  # fmt: skip

_WORD = re.compile(r"'(?:[^']|'')*'|[A-Za-z_]\w*|.", re.DOTALL)


def composed(rng: Random, depth: int) -> str:
    """A call of the list, its columns replaced by other columns, and some by calls: most do not fit together."""
    words = _WORD.findall(rng.choice(EXPRESSIONS))
    return "".join(_filled(word, rng, depth) if word in POOLS else word for word in words)


def _filled(column: str, rng: Random, depth: int) -> str:
    if depth > 1 and rng.random() < 0.7:
        return f"({composed(rng, depth - 1)})"
    return column if rng.random() < 0.5 else rng.choice(list(POOLS))
