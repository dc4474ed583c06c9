"""SQL text in and out: the only rooms that know sqlglot."""
