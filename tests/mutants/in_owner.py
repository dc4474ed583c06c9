"""Bugs planted in `dpsql.owner`, `dpsql.engines` and `dpsql.verify`."""

from tests.mutants.mutant import mutant
from tests.mutants.selections import (
    ATTACKS_INTERFACES,
    CLI_CHECK,
    CLI_INIT,
    DRAFT_INIT_REGRESSIONS,
    ENGINES_DUCKDB,
    OWNER_USERS,
    VERIFY_TRIAL,
    select,
)

MUTANTS = (
    mutant(
        "the engine's words are passed on",
        "dpsql.engines.base:run_guarded",
        """
        try:
            return run()
        except Error:
            raise
        except Exception:
            log.error("the engine failed", exc_info=True)
        """,
        """
        try:
            return run()
        except Error:
            raise
        except Exception as error:
            raise EngineFailed(str(error)) from None
        """,
        select(ENGINES_DUCKDB, "says_nothing_about_rows"),
    ),
    mutant(
        "the engine plans outer joins that fail on some rows",
        "dpsql.engines.duckdb:_PINNED_SETTINGS",
        '"type_pushdown,projection_pullup"',
        '"type_pushdown"',
        select(ENGINES_DUCKDB, "outer_joins"),
    ),
    mutant(
        "line ends within quotes are made one, with those of all rows",
        "dpsql.engines.text_files:_LineEnds.unify",
        "part if self._is_quoted else _LINE_END.sub('\\n', part)",
        "_LINE_END.sub('\\n', part)",
        ("tests/unit/engines/test_duckdb_admin.py",),
    ),
    mutant(
        "one statement's internal error fails those of all others",
        "dpsql.engines.duckdb:DuckDBEngine._run_select",
        "self._replace_instance(instance)",
        "",
        select(ENGINES_DUCKDB, "internal_error"),
    ),
    mutant(
        "a run past its time is nobody's failure",
        "dpsql.engines.duckdb:DuckDBEngine._run_on_instance",
        "late.is_set()",
        "False",
        ENGINES_DUCKDB,
    ),
    mutant(
        "a check tells less noise than there is",
        "dpsql.owner.check.dry_run:_read_cells",
        "factor * bar.stderr",
        "1.96 * bar.stderr",
        select(DRAFT_INIT_REGRESSIONS, "interval"),
    ),
    mutant(
        "a check is charged to the dataset",
        "dpsql.owner.check.dry_run:_detached_schema",
        "ledger=f\"sqlite:///{folder / 'rehearsal.ledger'}\"",
        "",
        select(CLI_CHECK, "no_trace"),
    ),
    mutant(
        "a table without a way to the unit is drafted as public",
        "dpsql.owner.draft.draft:_DraftWriter._write_unreachable_table",
        '(f"  # {line}" for line in block)',
        '(f"  {line}" for line in block)',
        select(CLI_INIT, "loads_from_every_source"),
    ),
    mutant(
        "a draft is made from rows that nobody asked to look at",
        "dpsql.owner.draft.init:draft_schema",
        "proposals = propose_from_data(sources, picked) if look_at_data else None",
        "proposals = propose_from_data(sources, picked)",
        select(CLI_INIT, "no_value_of_a_row"),
    ),
    mutant(
        "a value of few units is proposed for a list",
        "dpsql.owner.draft.init:_propose_column",
        "find_common_values(ask, source, column, unit, MIN_UNITS, MAX_VALUES)",
        "find_common_values(ask, source, column, unit, 1, MAX_VALUES)",
        select(CLI_INIT, "rare"),
    ),
    mutant(
        "a draft does not ask about a second person",
        "dpsql.owner.draft.relationships:second_unit_columns",
        "(*linked, *_similar_unit_columns(unit, tables, own_table))",
        "()",
        select(DRAFT_INIT_REGRESSIONS, "second"),
    ),
    mutant(
        "a value of one unit with many rows is proposed for a list",
        "dpsql.owner.introspect.statistics:find_common_values",
        'counted = "count(*)" if unit is None else f"count(DISTINCT {quote_identifier(unit)})"',
        'counted = "count(*)"',
        select(CLI_INIT, "rare"),
    ),
    mutant(
        "the first row of a file becomes the names of its columns",
        "dpsql.owner.introspect.csv_files:introspect_csv",
        "not is_certain",
        "False",
        select(CLI_INIT, "without_a_header"),
    ),
    mutant(
        "a first row with an odd null becomes names",
        "dpsql.owner.introspect.csv_files:_has_certain_header",
        "len(above) + known_headers + quantities >= min(2, len(typed))",
        "len(above) + known_headers + quantities >= 1",
        select(ATTACKS_INTERFACES, "odd_null"),
    ),
    mutant(
        "a first row whose values come again becomes names",
        "dpsql.owner.introspect.csv_files:introspect_csv",
        """
        _has_certain_header(dialect, _find_codes(owner, path, dialect), _count_rows(owner, path, dialect))
        and not _is_header_repeated(owner, path, dialect)
        """,
        "_has_certain_header(dialect, _find_codes(owner, path, dialect), _count_rows(owner, path, dialect))",
        select(ATTACKS_INTERFACES, "odd_null"),
    ),
    mutant(
        "a column of any texts is one of codes",
        "dpsql.owner.introspect.csv_files:_find_codes",
        "present >= _MIN_CODES and present in matched",
        "present >= _MIN_CODES",
        select(ATTACKS_INTERFACES, "odd_null"),
    ),
    mutant(
        "the one row of a file becomes the names of its columns",
        "dpsql.owner.introspect.csv_files:_has_certain_header",
        "known_headers > 0 and len(set(fields)) == len(fields) and all(map(_PLAIN_NAME.fullmatch, fields))",
        "len(set(fields)) == len(fields) and all(map(_PLAIN_NAME.fullmatch, fields))",
        select(ATTACKS_INTERFACES, "odd_null"),
    ),
    mutant(
        "labels that were made of rows are drafted as public groups",
        "dpsql.owner.introspect.tables:_introspect_column",
        "IntrospectedColumn(name, outer_type_name(spelling), declarable_type(spelling), comment=comment)",
        r"""
        IntrospectedColumn(
            name,
            outer_type_name(spelling),
            declarable_type(spelling),
            tuple(re.findall(r"'(\w+)'", spelling)),
            comment=comment,
        )
        """,
        select(ATTACKS_INTERFACES, "labels"),
    ),
    mutant(
        "a check that is ended leaves its rows",
        "dpsql.owner.temp_folder:_exit_on_signals",
        "_END_SIGNALS",
        "()",
        select(ATTACKS_INTERFACES, "signal"),
    ),
    mutant(
        "a check that is killed leaves its rows for ever",
        "dpsql.owner.temp_folder:open_temp_folder",
        "_remove_stale_folders()",
        "",
        select(ATTACKS_INTERFACES, "killed"),
    ),
    mutant(
        "an edit of one analyst may change a budget",
        "dpsql.owner.users:_change_schema",
        "replace(after, analysts=before.analysts) != before",
        "False",
        select(OWNER_USERS, "more_than_was_meant or nowhere"),
    ),
    mutant(
        "others read verifiers while a schema is written",
        "dpsql.owner.users:_replace_file",
        "open_private_file(draft, os.O_EXCL | os.O_WRONLY)",
        "os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)",
        select(OWNER_USERS, "alone"),
    ),
    mutant(
        "a column's name breaks out of its draft",
        "dpsql.owner.yaml_text:format_scalar",
        "return quote_text(text)",
        "return text",
        select(CLI_INIT, "odd_names"),
    ),
    mutant(
        "a changed unit of made-up rows keeps its id",
        "dpsql.verify.generate.neighbors:_replacement_number",
        "return number + _REPLACEMENT_OFFSET if choices.draw_bool(0.5) else number",
        "return number",
        select(VERIFY_TRIAL, "one_block"),
    ),
)
