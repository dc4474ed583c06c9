"""Bugs planted in `dpsql.session`."""

from tests.mutants.match import Edit
from tests.mutants.mutant import Mutant, mutant
from tests.mutants.selections import (
    ARTIFACTS_CREATE_MODEL,
    ARTIFACTS_CREATE_SYNTHETIC_TABLE,
    ATTACKS_INTERFACES,
    ATTACKS_JOINS,
    ATTACKS_LEDGER,
    ATTACKS_NEIGHBORING_ROWS,
    ATTACKS_PYTHON_INTERFACE,
    ATTACKS_SOUNDNESS_ROWS,
    DATASET_FILE_IDENTITY,
    DATASET_RUNS,
    DATASET_RUNS_ERRORS,
    DATASET_RUNS_PROCESSES,
    DATASET_RUNS_SHARED,
    DATASET_VERSIONS,
    DBAPI_BACKGROUND_OPEN,
    MECHANISMS_INTERACTION,
    MECHANISMS_REGISTRY,
    POSTPROCESS_CATALOG_SANDBOX,
    POSTPROCESS_ESTIMATES_RANDOMIZED_RESPONSE,
    POSTPROCESS_POSTERIORS,
    POSTPROCESS_RUNTIME_PARAMETERS,
    POSTPROCESS_WORKER_POOL,
    PROPERTY_CHARGE_ORDER,
    SESSION,
    SESSION_LOGINS,
    SESSION_PILOT,
    SESSION_PRICING,
    SESSION_RESULTS_CACHE,
    SESSION_ROLES,
    SESSION_TRANSACTION,
    select,
)

MUTANTS = (
    mutant(
        "values are charged for a table that the budget does not cover",
        "dpsql.session.artifacts.create_synthetic_table:SyntheticTableBuilder._check_draft",
        "queries.require_covered([*parts, draft.studied.compiled], request.sql, chosen.settings)",
        "pass",
        select(ARTIFACTS_CREATE_SYNTHETIC_TABLE, "together_or or made_again"),
    ),
    mutant(
        "objects: a model is shown under the name that was seen first",
        "dpsql.session.artifacts.namespace:ObjectNamespace._load_model",
        "key = (stored.release, stored.name, stored.definition)",
        "key = (stored.release,)",
        select(ARTIFACTS_CREATE_MODEL, "two_names"),
    ),
    mutant(
        "a newer version times a run",
        "dpsql.session.dataset.dataset:Dataset.check_read",
        "file_identity.check_read(self.resolved)",
        "self.check_unchanged()",
        ATTACKS_LEDGER,
    ),
    mutant(
        "each connection has runs of its own",
        "dpsql.session.dataset.dataset:open_dataset",
        "Runs(schema.limits.min_latency, ledger=ledger.identity, max_runs_per_account=schema.limits.running)",
        "Runs(schema.limits.min_latency, max_runs_per_account=schema.limits.running)",
        DATASET_RUNS_SHARED,
    ),
    mutant(
        "a version is made when the data has changed",
        "dpsql.session.dataset.file_identity:is_refresh_due",
        "registered_at is None or grid.round_down(registered_at) < grid.round_down(now)",
        "current.identity != identify_files(schema, expand_sources(schema))",
        select(DATASET_VERSIONS, "TestSchedule"),
    ),
    mutant(
        "a refusal names files that may be named after units",
        "dpsql.session.dataset.file_identity:_describe_file_change",
        "len(old) == 1",
        "old",
        select(DATASET_VERSIONS, "no_names"),
    ),
    mutant(
        "rows in the log of a database are served unchecked",
        "dpsql.session.dataset.file_identity:identify_files",
        '[database, database.with_name(database.name + ".wal")]',
        "[database]",
        DATASET_FILE_IDENTITY,
    ),
    mutant(
        "keys are made shorter, and served unchecked",
        "dpsql.session.dataset.file_identity:_sanitizing_rules",
        "[str(domain.lower), str(domain.upper), values, column.max_length]",
        "[str(domain.lower), str(domain.upper), values]",
        DATASET_FILE_IDENTITY,
    ),
    mutant(
        "data that has changed is served",
        "dpsql.session.dataset.file_identity:check_unchanged",
        "current is None or current.identity != identity",
        "current is None",
        DATASET_FILE_IDENTITY,
    ),
    mutant(
        "what is delivered is not what was stored",
        "dpsql.session.dataset.runs:_store_and_read_back",
        "return data.ledger.store_body(job.release, body, job.errors)",
        """
        data.ledger.store_body(job.release, body, job.errors)
        return body
        """,
        PROPERTY_CHARGE_ORDER,
    ),
    mutant(
        "that a run has ended is seen at once",
        "dpsql.session.dataset.runs:Runs._time_until_due",
        "max(0, visible_after(ended, self._grid) - elapsed) if self._grid else 0",
        "max(0, visible_after(ended, self._grid) - elapsed) if False else 0",
        (*DATASET_RUNS, *DATASET_RUNS_ERRORS),
    ),
    mutant(
        "the grid begins at the end of a run",
        "dpsql.session.dataset.runs:Runs._delay_until_visible",
        "elapsed = self._clock.now() - start",
        "elapsed = 0",
        (*DATASET_RUNS, *DATASET_RUNS_ERRORS),
    ),
    mutant(
        "what is stored is seen before its run has ended",
        "dpsql.session.dataset.runs:Runs.join_run",
        """
        if run is not None:
            return self._wait_for_outcome(run, handle)
        """,
        "",
        (*DATASET_RUNS, *DATASET_RUNS_ERRORS),
    ),
    mutant(
        "another process's run is seen when it ends",
        "dpsql.session.dataset.runs:Runs._time_until_visible",
        """
        self._time_until_due(
            running.ended * NANOSECONDS_PER_MICROSECOND, running.elapsed * NANOSECONDS_PER_MICROSECOND
        )
        """,
        "0",
        DATASET_RUNS_PROCESSES,
    ),
    mutant(
        "two who ask are two runs",
        "dpsql.session.dataset.runs:Runs.run_release",
        "run = run or self._begin_run(data, job, account)",
        "run = self._begin_run(data, job, account)",
        (*DATASET_RUNS, *DATASET_RUNS_ERRORS),
    ),
    mutant(
        "an account takes all runs",
        "dpsql.session.dataset.runs:Runs._is_full",
        "len(_registry.runs) >= MAX_RUNS or own >= self._max_runs_per_account",
        "len(_registry.runs) >= MAX_RUNS",
        (*DATASET_RUNS, *DATASET_RUNS_ERRORS),
    ),
    mutant(
        "who waits for another's run has no failure",
        "dpsql.session.dataset.runs:_count_failures",
        "uncounted if outcome.failure else ()",
        "uncounted[:1] if outcome.failure else ()",
        (*DATASET_RUNS, *DATASET_RUNS_ERRORS),
    ),
    mutant(
        "a failure is counted for each time that it was asked for",
        "dpsql.session.dataset.runs:Runs._follow_run",
        "account.name",
        "str(len(run.requesters))",
        (*DATASET_RUNS, *DATASET_RUNS_ERRORS),
    ),
    Mutant(
        "an error of a run is passed on with its frames",
        (
            Edit(
                "dpsql.session.dataset.runs:_without_context",
                "type(error)(error.message, detail=error.detail, hint=error.hint, sqlstate=error.sqlstate)",
                """
                type(error)(
                    error.message, detail=error.detail, hint=error.hint, sqlstate=error.sqlstate
                ).with_traceback(error.__traceback__)
                """,
            ),
            Edit(
                "dpsql.session.dataset.runs:attempt_run",
                "EngineFailed(ENGINE_FAILED, hint=ENGINE_FAILED_HINT)",
                "EngineFailed(ENGINE_FAILED, hint=ENGINE_FAILED_HINT).with_traceback(error.__traceback__)",
            ),
        ),
        (*DATASET_RUNS, *DATASET_RUNS_ERRORS),
    ),
    mutant(
        "closing is a failure",
        "dpsql.session.dataset.runs:attempt_run",
        'RunOutcome(error=QueryCanceled(CLOSED_MESSAGE, hint="Its charge stands; asking again is free."))',
        "RunOutcome(error=EngineFailed(ENGINE_FAILED, hint=ENGINE_FAILED_HINT), failure=True)",
        (*DATASET_RUNS, *DATASET_RUNS_ERRORS),
    ),
    mutant(
        "data that a reader raises on is registered",
        "dpsql.session.dataset.versions:check_table",
        "owner.check_readable(source, table.columns)",
        "",
        ATTACKS_NEIGHBORING_ROWS,
    ),
    mutant(
        "a type whose cast is not total is registered",
        "dpsql.session.dataset.versions:_check_readable_type",
        "_READABLE_TYPES.fullmatch(spelled) is None",
        "False",
        ATTACKS_JOINS,
    ),
    mutant(
        "a column with a collation is served",
        "dpsql.session.dataset.versions:check_table",
        "_check_collations(owner, table, source)",
        "pass",
        select(ATTACKS_SOUNDNESS_ROWS, "by_bytes"),
    ),
    mutant(
        "an id of another type is cast",
        "dpsql.session.dataset.versions:_check_id_type",
        "parse_type(spelling) != column.type",
        "False",
        select(ATTACKS_SOUNDNESS_ROWS, "another_type"),
    ),
    mutant(
        "a declared key is not checked",
        "dpsql.session.dataset.versions:check_table",
        "owner.has_duplicates(source, [column for column in table.columns if column.name in key], ids)",
        "False and owner.has_duplicates(source, [column for column in table.columns if column.name in key], ids)",
        select(ATTACKS_SOUNDNESS_ROWS, "parent_key"),
    ),
    mutant(
        "an id's labels are told with its type",
        "dpsql.session.dataset.versions:_check_id_type",
        "stored_type = spelling if parse_type(spelling) else outer_type_name(spelling)",
        "stored_type = spelling",
        select(ATTACKS_INTERFACES, "labels"),
    ),
    mutant(
        "EXPLAIN tells where snapshots stand",
        "dpsql.session.explain:with_declared_sources",
        "isinstance(table.source, Files)",
        'isinstance(table.source, Files) and table.source.format == "parquet"',
        select(ATTACKS_NEIGHBORING_ROWS, "explain"),
    ),
    mutant(
        "EXPLAIN tells what a variable holds",
        "dpsql.session.explain:_render_declared_source",
        "source.written or source.patterns",
        "source.patterns",
        select(ATTACKS_NEIGHBORING_ROWS, "explain"),
    ),
    mutant(
        "server: a stranger's salt is none",
        "dpsql.session.logins:Logins._dummy_verifier",
        "_derive_salt(self.secret, user, self.salt)",
        "bytes(self.salt)",
        SESSION_LOGINS,
    ),
    mutant(
        "server: strangers have as many iterations as nobody else",
        "dpsql.session.logins:Logins._dummy_verifier",
        "self.iterations",
        "ITERATIONS",
        SESSION_LOGINS,
    ),
    mutant(
        "sparse: a question with a hole is put as it stands",
        "dpsql.session.mechanisms.interaction:measure_question",
        "not step.keys and not step.holes and calibrated.choice is None and calibrated.selection is None",
        "not step.keys and calibrated.choice is None and calibrated.selection is None",
        select(MECHANISMS_INTERACTION, "one_number"),
    ),
    mutant(
        "sparse: what is done to the number is left out",
        "dpsql.session.mechanisms.interaction:measure_question",
        "not plain or not _UNCHANGED_MEASURE.fullmatch(compiled.post_sql) or len(calibrated.bundles) != 1",
        "not plain or len(calibrated.bundles) != 1",
        select(MECHANISMS_INTERACTION, "one_number"),
    ),
    mutant(
        "sparse: an answer that was not stored is asked again",
        "dpsql.session.mechanisms.interaction:Interaction._record_failure",
        "self._sparse_vector.queries_evaluated >= number",
        "False",
        select(MECHANISMS_INTERACTION, "could_not_be_stored"),
    ),
    mutant(
        "mechanisms: another account asks",
        "dpsql.session.mechanisms.interaction:Interaction.require_account",
        "queries.context.account != self.account",
        "False",
        select(MECHANISMS_REGISTRY, "change_of_the_role"),
    ),
    mutant(
        "mechanisms: a question that was left is judged again",
        "dpsql.session.mechanisms.interaction:Interaction._recall_answer",
        "self._last = *pending, StatementHandle(canceled=True)",
        "pass",
        select(MECHANISMS_REGISTRY, "left_is_judged_once"),
    ),
    mutant(
        "mechanisms: an answer that nobody got is judged again",
        "dpsql.session.mechanisms.interaction:Interaction._recall_answer",
        "self._last is not None and self._last[0] == question_id and self._last[2].canceled",
        "self._last is not None and False",
        select(MECHANISMS_REGISTRY, "delivery_was_canceled"),
    ),
    mutant(
        "mechanisms: a question is the same whatever it is held against",
        "dpsql.session.mechanisms.interaction:_identify_question",
        "repr((statement, comparison_value))",
        "repr(statement)",
        select(MECHANISMS_REGISTRY, "another_mean"),
    ),
    mutant(
        "mechanisms: what was left is kept without end",
        "dpsql.session.mechanisms.interaction:Interaction.__init__",
        "deque(maxlen=MAX_UNDELIVERED)",
        "deque()",
        select(MECHANISMS_REGISTRY, "memory"),
    ),
    mutant(
        "mechanisms: EXPLAIN pays",
        "dpsql.session.mechanisms.interaction:Interaction.forecast",
        "loss, paid = spec.loss, self._entitlement is not None",
        """
        self._charge_mechanism(queries, spec)
        loss, paid = spec.loss, self._entitlement is not None
        """,
        select(MECHANISMS_REGISTRY, "explaining_and_preparing"),
    ),
    mutant(
        "mechanisms: each question is a mechanism of its own",
        "dpsql.session.mechanisms.interaction:Interaction._charge_mechanism",
        "self._entitlement is not None",
        "False",
        select(MECHANISMS_REGISTRY, "pays_for_all"),
    ),
    mutant(
        "mechanisms: what a holdout is held against is bought",
        "dpsql.session.mechanisms.registry:_refuse_charges",
        "before, handle.free = handle.free, True",
        "before = handle.free",
        select(MECHANISMS_REGISTRY, "where_that_is_free"),
    ),
    mutant(
        "mechanisms: a connection holds any number",
        "dpsql.session.mechanisms.registry:MechanismRegistry._check_declaration",
        """
        if len(self._mechanisms) >= MAX_MECHANISMS:
            raise LimitExceeded(
                f"there are {MAX_MECHANISMS} thresholds and holdouts already",
                hint="CLOSE those that are done.",
            )
        """,
        """
        if False:
            raise LimitExceeded(
                f"there are {MAX_MECHANISMS} thresholds and holdouts already",
                hint="CLOSE those that are done.",
            )
        """,
        select(MECHANISMS_REGISTRY, "number_is_bounded"),
    ),
    mutant(
        "mechanisms: a change of the role ends none",
        "dpsql.session.named_statements:NamedStatements.change_role",
        'self.mechanisms.end_all("the role of its connection has changed")',
        "pass",
        select(MECHANISMS_REGISTRY, "change_of_the_role"),
    ),
    mutant(
        "mechanisms: CLOSE ALL leaves them",
        "dpsql.session.named_statements:NamedStatements.close_named",
        "self.mechanisms.close_all()",
        "",
        select(MECHANISMS_REGISTRY, "closing_ends"),
    ),
    mutant(
        "what a pilot may lead to is not looked at along the payers",
        "dpsql.session.pilot:require_epsilon_allowed",
        "[payer.largest_epsilon for payer in payers if payer.largest_epsilon is not None]",
        "[payer.largest_epsilon for payer in payers[:1] if payer.largest_epsilon is not None]",
        SESSION_PILOT,
    ),
    mutant(
        "the catalog's database can be reconfigured",
        "dpsql.session.postprocess.locked_duckdb:LockedDatabases.get_instance",
        "lock_configuration(connection, (*self.settings, *_SETTINGS))",
        "",
        POSTPROCESS_CATALOG_SANDBOX,
    ),
    mutant(
        "the catalog's database runs more than one SELECT",
        "dpsql.session.postprocess.locked_duckdb:LockedDatabases.require_single_select",
        "len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT",
        "False",
        POSTPROCESS_CATALOG_SANDBOX,
    ),
    mutant(
        "statements about the catalog take as long as they like",
        "dpsql.session.postprocess.locked_duckdb:LockedDatabases.open_cursor",
        "_watchdog.enforce_deadline(timeout, cursor.interrupt)",
        "_watchdog.enforce_deadline(timeout + 15, cursor.interrupt)",
        POSTPROCESS_CATALOG_SANDBOX,
    ),
    mutant(
        "the chance of the randomizing is left out of the bars",
        "dpsql.session.postprocess.estimates:ResponseInverse.response_variance",
        "return np.maximum(self.propagate_variance(seen) - self.debias_sums(seen), 0.0)",
        "return np.zeros_like(seen)",
        POSTPROCESS_ESTIMATES_RANDOMIZED_RESPONSE,
    ),
    mutant(
        "a posterior knows of another noise",
        "dpsql.session.postprocess.noisy_cells:NoisyCells.noise_of",
        "float(abs(coefficient) * grid * scale_of(mechanism))",
        "float(abs(coefficient) * grid)",
        POSTPROCESS_POSTERIORS,
    ),
    mutant(
        "a posterior's counts are what the noise made of them",
        "dpsql.session.postprocess.posteriors:infer_proportion.evaluate_with_quadrature",
        "gauss_legendre_nodes(n, noise, low, high, _PROPORTION_NODES)",
        "three_point_nodes(n, noise)",
        POSTPROCESS_POSTERIORS,
    ),
    mutant(
        "what was released may lie beyond a hole's bounds",
        "dpsql.session.postprocess.runtime_parameters:_fit_to_domain",
        "return _clip_to_bounds(converted, *domain.bounds)",
        "return converted",
        POSTPROCESS_RUNTIME_PARAMETERS,
    ),
    Mutant(
        "a hole keeps what its type does not hold",
        (
            Edit(
                "dpsql.session.postprocess.runtime_parameters:fit_to_type",
                "return None if value is None else _convert_to_type(value, type_)",
                "return value",
            ),
            Edit(
                "dpsql.compiler.render.expressions:_render_unchecked",
                '_limit_to_python_range(f"TRY_CAST(${expr.hole} AS {render_type_name(expr.type)})", expr.type)',
                'f"CAST(${expr.hole} AS {render_type_name(expr.type)})"',
            ),
        ),
        ATTACKS_JOINS,
    ),
    mutant(
        "a statement takes the memory of all",
        "dpsql.session.postprocess.worker:limit_memory",
        "resource.setrlimit(resource.RLIMIT_AS, (current + MAX_EXTRA_MEMORY, current + MAX_EXTRA_MEMORY))",
        "pass",
        POSTPROCESS_WORKER_POOL,
    ),
    mutant(
        "a child has the secrets of the schema",
        "dpsql.session.postprocess.worker_pool:_strip_secrets",
        'replace(schema, engine="", ledger="", analysts=(), groups=())',
        "schema",
        POSTPROCESS_WORKER_POOL,
    ),
    mutant(
        "what a child sends is run",
        "dpsql.session.postprocess.worker_pool:_PlainUnpickler.find_class",
        "(module, name) in _PLAIN_CLASSES",
        "True",
        POSTPROCESS_WORKER_POOL,
    ),
    mutant(
        "a child has the secrets of the server",
        "dpsql.session.postprocess.worker_pool:_Worker.__init__",
        "env=environment",
        "env={**os.environ, **environment}",
        POSTPROCESS_WORKER_POOL,
    ),
    mutant(
        "what is paid for has a price",
        "dpsql.session.pricing:StatementQuote.loss_due",
        "[index for index, quote in enumerate(self.quotes) if not quote.is_paid]",
        "[index for index, _ in enumerate(self.quotes)]",
        SESSION_PRICING,
    ),
    mutant(
        "what is asked for twice has two prices",
        "dpsql.session.pricing:_distinct_loss.identity_of",
        """
        request.plan,
        request.version,
        request.loss,
        request.errors,
        tuple(identity_of(before) for before in request.after),
        """,
        """
        index,
        request.plan,
        request.version,
        request.loss,
        request.errors,
        tuple(identity_of(before) for before in request.after),
        """,
        SESSION_PRICING,
    ),
    mutant(
        "the error told is that of a fresh release",
        "dpsql.session.pricing:StatementQuote.stderrs",
        "return expected_errors(self.reuse.compiled, self._delivered_specs)",
        "return expected_errors(self.compiled)",
        SESSION_PRICING,
    ),
    mutant(
        "a parent's policy is not told of",
        "dpsql.session.pricing:_policy_violation",
        """
        for payer in payers:
            require_policy(payer, ChargedStatement(compiled.statement, settings.epsilon, settings.delta))
        """,
        """
        for payer in payers[:1]:
            require_policy(payer, ChargedStatement(compiled.statement, settings.epsilon, settings.delta))
        """,
        SESSION_PRICING,
    ),
    mutant(
        "an account that expired is promised answers",
        "dpsql.session.pricing:PricingContext.refusal_reason",
        "return error.message",
        "return None",
        SESSION_PRICING,
    ),
    mutant(
        "the engine runs before the charge",
        "dpsql.session.purchase:Purchase.charge_and_run",
        "self._dataset.check_files()",
        """
        self._dataset.check_files()
        for step in compiled.steps:
            self._dataset.engine.execute(step.sql, len(step.keys), {})
        """,
        PROPERTY_CHARGE_ORDER,
    ),
    mutant(
        "progress is a clock of the engine",
        "dpsql.session.purchase:Purchase.charge_and_run",
        "self.context.cancel.releases = len({entitlement.release for entitlement in entitlements})",
        """
        self.context.cancel.releases = len({entitlement.release for entitlement in entitlements})
        self.context.cancel.delivered = len(bodies) + (len(entitlements) > 1)
        """,
        select(ATTACKS_INTERFACES, "clock_of_the_engine"),
    ),
    mutant(
        "what was to be free is bought",
        "dpsql.session.purchase:Purchase._admit_charge",
        "self.context.cancel.free",
        "False",
        ATTACKS_PYTHON_INTERFACE,
    ),
    mutant(
        "a charge that was interrupted is not told",
        "dpsql.session.purchase:Purchase.charge_so_far",
        "charge.recorded or self._is_recorded(charge)",
        "charge.recorded",
        ATTACKS_PYTHON_INTERFACE,
    ),
    mutant(
        "a charge that is tried is kept",
        "dpsql.session.purchase:Purchase._end_dry_run",
        "raise _DryRunDone",
        "",
        select(ARTIFACTS_CREATE_SYNTHETIC_TABLE, "together_or or made_again"),
    ),
    mutant(
        "runs without number",
        "dpsql.session.purchase:Purchase._admit_charge",
        "self._dataset.runs.admit_runs(entitlements)",
        "",
        DATASET_RUNS_SHARED,
    ),
    mutant(
        "an account's stored answers are served without a look at the version",
        "dpsql.session.purchase:Purchase.find_stored",
        "self._dataset.check_current()",
        "pass",
        select(SESSION, "remembered or asked_again"),
    ),
    mutant(
        "what is left is told as before the charge",
        "dpsql.session.purchase:Purchase.find_stored",
        "self.balance = None",
        "pass",
        select(SESSION_RESULTS_CACHE, "what_is_left"),
    ),
    mutant(
        "the price of a pilot is told as that of the statement",
        "dpsql.session.query:QueryExecutor.explain.compile_with",
        "None if stored is None else self._build_result(compiled_statement, StoredReleases(stored))",
        "None",
        SESSION_PILOT,
    ),
    mutant(
        "a remembered answer is given out without a look at the ledger",
        "dpsql.session.query:QueryExecutor._charge_and_build",
        "self.purchase.find_stored(compiled, self._may_derive(compiled))",
        "self.purchase.find_stored(compiled) if not len(self.cache.results) else StoredReleases(())",
        select(SESSION, "remembered or asked_again"),
    ),
    mutant(
        "who is given an answer changes the one that is remembered",
        "dpsql.session.query:QueryExecutor._build_result",
        "answer.copy_uncharged()",
        "answer",
        select(SESSION, "remembered or asked_again"),
    ),
    mutant(
        "anyone may act for anyone",
        "dpsql.session.roles:ConnectionRoles._require_allowed_role",
        "allowed",
        "[analyst_name.name for analyst_name in self._schema.analysts]",
        SESSION_TRANSACTION,
    ),
    mutant(
        "who acts for another pays herself",
        "dpsql.session.roles:ConnectionRoles.get_role",
        "self._user if role == NO_ROLE else role",
        "self._user",
        SESSION_ROLES,
    ),
    mutant(
        "an analyst leaves the role that a service opened for her",
        "dpsql.session.roles:ConnectionRoles.resolve_role",
        '"role" not in self._opening_settings',
        "True",
        SESSION_ROLES,
    ),
    mutant(
        "an analyst with the name of nobody leaves the role of the service",
        "dpsql.session.roles:ConnectionRoles.resolve_role",
        '"role" not in self._opening_settings',
        "self.initial_role == NO_ROLE",
        SESSION_ROLES,
    ),
    mutant(
        "what a connection was opened with is forgotten by resets",
        "dpsql.session.roles:ConnectionRoles.initial_values",
        "self._opening_settings.items()",
        "()",
        SESSION_TRANSACTION,
    ),
    mutant(
        "a statement runs with the session's settings",
        "dpsql.session.session:Session._new_context",
        "self._state.for_statement(settings or {}).now",
        "self._state.now",
        ATTACKS_PYTHON_INTERFACE,
    ),
    mutant(
        "a prompt stands above data that has changed",
        "dpsql.session.status_preview:_read_status",
        "file_identity.check_unchanged(schema, ledger, current.number, datetime.now(UTC))",
        "0 and file_identity.check_unchanged(schema, ledger, current.number, datetime.now(UTC))",
        select(DBAPI_BACKGROUND_OPEN, "changed or nothing"),
    ),
)
