"""The tests that `make test` leaves to `make test-slow`."""

from __future__ import annotations

SLOW = frozenset(
    (
        "attacks/test_function_fuzzer.py",
        "attacks/test_wide_and_deep.py",
        "clients/sqlalchemy/test_compliance.py",
        "clients/sqlalchemy/test_dialect_connections.py",
        "clients/test_repl_screens.py",
        "clients/test_repl_terminal.py",
        "clients/test_startup.py",
        "clients/wire/test_remote.py",
        "clients/wire/test_remote_link.py",
        "clients/wire/test_remote_prompt.py",
        "clients/wire/test_server_life.py",
        "clients/wire/test_server_robust.py",
        "clients/wire/test_wire_battery.py",
        "clients/wire/test_wire_logins.py",
        "clients/wire/test_wire_sqlalchemy.py",
        "property/test_derive.py",
        "property/test_functions.py",
        "property/test_generated.py",
        "property/test_interleavings.py",
        "test_docs_cli.py",
        "test_docs_owner.py",
        "test_public_api.py",
        "unit/catalog/test_catalog_corpus.py",
        "unit/cli/test_check_finds.py",
        "unit/cli/test_cli_audit.py",
        "unit/cli/test_cli_check.py",
        "unit/cli/test_cli_commands.py",
        "unit/cli/test_cli_init.py",
        "unit/cli/test_cli_verify.py",
        "unit/dbapi/test_dbapi_answers.py",
        "unit/dbapi/test_notebook.py",
        "unit/dbapi/test_pep249.py",
        "unit/ledger/test_ledger_audit.py",
        "unit/pgwire/test_conversation_like_postgres.py",
        "unit/test_compiling_ends.py",
        "unit/test_quoting.py",
        "unit/test_runs_processes.py",
    )
)
"""Files that take half of the time of all tests: most start processes. `make test` is to be done in ten minutes."""
