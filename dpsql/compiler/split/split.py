"""Split a statement at the privacy boundary: releases below, post-processing above.

Every query block is *public*, *owned* or *released*, bottom up. A block over owned rows that aggregates is a
release, unless it groups by the unit; its post-processing is the same block with FROM set to the release, HAVING turned
into WHERE, aggregates and keys replaced by the release's columns. What is above may use all of SQL.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from sqlglot import exp
from sqlglot.errors import SqlglotError

from dpsql.compiler.analysis.narrowed_integers import find_narrowing_notices
from dpsql.compiler.bind.aggregates import has_aggregate
from dpsql.compiler.bind.binder import Binder
from dpsql.compiler.bind.blockwise import BLOCKWISE_NAME
from dpsql.compiler.bind.correlation import LOOKUP_KEY, DecorrelatedSelect, has_own_list, look_up_group
from dpsql.compiler.bind.outputs import Output, name_outputs, output_name
from dpsql.compiler.bind.scope import Scope
from dpsql.compiler.bind.sources import check_qualifier, find_synthetic_table, require_table, strip_database
from dpsql.compiler.bind.windows import rewrite_distinct_on
from dpsql.compiler.catalog.tables import catalog_schema_of, catalog_table_names, find_catalog_table
from dpsql.compiler.catalog.variables import Identity
from dpsql.compiler.parse.dialect import find_calls, refuse_other_args, span_of
from dpsql.compiler.parse.parser import is_join_tree, join_leaves, parse_query
from dpsql.compiler.plan.relations import Field
from dpsql.compiler.plan.walk import narrows_integers
from dpsql.compiler.postprocess.allowed_functions import check_allowed_function, check_allowed_source, lateral_values
from dpsql.compiler.split.blocks import (
    Block,
    BoundRelease,
    CountedKeys,
    Environment,
    Ownership,
    PublicRead,
    SplitState,
    annotate_outputs,
    check_clauses,
    combine_ownership,
    drop_unread_ctes,
    find_counted_keys,
    has_randomized_call,
    infer_source_outputs,
    is_release_select,
    make_recursive_block,
    name_columns,
    order_releases,
    prepend_ctes,
    reads_itself,
    restore_parentheses,
    single_unit_group_error,
    sources_of,
    unify_outputs,
)
from dpsql.compiler.split.declared_range import DeclaredRanges, RangeSource, find_output_blocks
from dpsql.compiler.split.declared_statistics import expand_statistics
from dpsql.compiler.split.integer_division import IntegerDivision, warn_of_columns
from dpsql.compiler.split.pivot import rewrite_pivots
from dpsql.compiler.split.randomized_response import bind_randomized_block
from dpsql.compiler.split.release_block import ErrorBar, ReleaseBlock
from dpsql.compiler.split.row_queries import (
    NoPreview,
    check_previewable,
    describe_or_refuse_rows,
    dummy_table_name,
    finish_preview,
)
from dpsql.compiler.split.runtime_parameters import SubqueryParameters, must_aggregate_error, scan_declared_tables
from dpsql.compiler.split.session_functions import replace_session_functions
from dpsql.errors import InternalError, InvalidSyntax, NotPrivate, UnknownTable, Unsupported
from dpsql.schema.model import CREATED_SCHEMA, Column, Schema

ANONYMOUS = Identity("", "", "")


@dataclass(frozen=True)
class SplitQuery:
    """`releases` stand in order of dependence: a hole's source reads earlier ones only."""

    reads: tuple[PublicRead, ...]
    releases: tuple[BoundRelease, ...]
    post: exp.Query
    errors: tuple[ErrorBar | None, ...]  # per output column, where it is an aggregate as it stands
    made_up: tuple[tuple[str, str], ...] = ()  # of a preview: names, and the private tables that they stand for
    warnings: tuple[str, ...] = ()
    counted: tuple[CountedKeys, ...] = ()


def split_query(
    tree: exp.Query,
    schema: Schema,
    now: dt.datetime | None = None,
    identity: Identity = ANONYMOUS,
    ranges: RangeSource = RangeSource.DECLARED,
    division: IntegerDivision = IntegerDivision.REFUSE,
    statement: str = "",
) -> SplitQuery:
    """`statement` is the text, for hints that repeat it."""
    original = tree.copy() if schema.has_previews else None
    try:
        return _split_tree(tree, Splitter(SplitState(schema, statement=statement), identity, now, ranges, division))
    except NotPrivate:
        if original is not None:
            with suppress(NoPreview):
                made_up = SplitState(schema, preview=True)
                return _split_tree(original, Splitter(made_up, identity, now, ranges, division))
        raise


def _split_tree(tree: exp.Query, splitter: Splitter) -> SplitQuery:
    try:
        plain = splitter.prepare_tree(tree)
        if plain.find(exp.Min, exp.Max) is not None:
            splitter.shown = find_output_blocks(plain)
        block = splitter.split_block(plain, {}, top=True)
    except SqlglotError:  # a tree that its own generator cannot write
        raise InvalidSyntax("the statement is not understood") from None
    if block.ownership is Ownership.OWNED:
        raise InternalError("a block that gives out rows was not refused")
    state = splitter.state
    if state.preview:
        finish_preview(block, state)
    prepend_ctes(block.post, state.kept_views)
    drop_unread_ctes(block.post)
    reads, made_up = tuple(state.reads.values()), tuple((name, table) for table, name in state.made_up.items())
    warnings = tuple(dict.fromkeys(state.warnings))
    releases, counted = order_releases(state.releases), tuple(state.counted)
    return SplitQuery(reads, releases, block.post, block.errors, made_up, warnings, counted)


@dataclass
class Splitter:
    state: SplitState
    who: Identity
    now: dt.datetime | None
    ranges: RangeSource
    division: IntegerDivision = IntegerDivision.REFUSE
    shown: frozenset[int] = frozenset()  # blocks whose MIN and MAX may be declared bounds

    def prepare_tree(self, tree: exp.Query) -> exp.Query:
        """A statement, or a view's, without what asks for its surroundings."""
        schema = self.state.schema
        if self.state.preview:
            check_previewable(tree)
        tree = replace_session_functions(tree, self.now, self.who)
        if find_calls(tree, BLOCKWISE_NAME):
            tree = expand_statistics(tree, schema)
        tree = strip_database(tree, schema)
        return tree if tree.find(exp.Pivot) is None else rewrite_pivots(tree, schema)

    # --- queries -----------------------------------------------------------------------------------------------------

    def split_block(self, query: exp.Expr, outer: Environment, top: bool = False) -> Block:
        if isinstance(query, exp.Subquery):
            refuse_other_args(query, "this", "alias")
            return self.split_block(query.this, outer, top)
        if isinstance(query, exp.Table | exp.Values | exp.Unnest | exp.Lateral):  # a source of its own
            return self._split_source(query, outer)
        if not isinstance(query, exp.Select | exp.SetOperation):
            raise Unsupported("only SELECT, UNION, INTERSECT, EXCEPT and VALUES are queries here", span=span_of(query))
        _inline_counted_cte(query)
        env, released_ctes = self._split_ctes(query, outer)
        self.state.environments[self.state.keep(query)] = env
        if isinstance(query, exp.SetOperation):
            result = self._split_set_operation(query, env, top)
        else:
            result = self._split_select(query, env, top)
        if result.ownership is not Ownership.OWNED:
            prepend_ctes(result.post, released_ctes)
        return result

    def _split_ctes(self, query: exp.Query, outer: Environment) -> tuple[Environment, list[exp.CTE]]:
        """Owned CTEs are inlined where they are used; released ones stay, one release however often they are read."""
        with_ = query.args.get("with_")
        if with_ is None:
            return outer, []
        refuse_other_args(with_, "expressions", "recursive")
        env, released_ctes, own = dict(outer), [], set[str]()
        for cte in with_.expressions:
            refuse_other_args(cte, "this", "alias", "materialized")
            alias = cte.args["alias"]
            refuse_other_args(alias, "this", "columns")
            if cte.alias.startswith("_"):
                raise Unsupported("names that begin with _ are taken", span=span_of(alias))
            if cte.alias.lower() in own:
                raise InvalidSyntax(f'the name "{cte.alias}" is used more than once in WITH',
                                    span=span_of(alias), sqlstate="42712")  # fmt: skip
            own.add(cte.alias.lower())
            if alias.args.get("columns"):
                name_columns(cte.this, alias.args["columns"])
            if with_.args.get("recursive") and reads_itself(cte):
                block = make_recursive_block(cte, env, self.split_block, self.state)
            else:
                block = self.split_block(cte.this, env)
            # A name that stood for something else means this from here on; what was read before keeps its meaning.
            env = {name: scoped for name, scoped in env.items() if name != cte.alias.lower()}
            env[cte.alias.lower()] = block
            if block.ownership is not Ownership.OWNED:
                released_ctes.append(exp.CTE(this=block.post, alias=exp.TableAlias(this=alias.this)))
        query.set("with_", None)
        return env, released_ctes

    def _split_set_operation(self, query: exp.SetOperation, env: Environment, top: bool) -> Block:
        kinds = [self.ownership_of(side, env) for side in (query.left, query.right)]
        if Ownership.OWNED in kinds:
            if kinds != [Ownership.OWNED] * 2:
                raise Unsupported(
                    f"{query.key.upper()} of private rows with others is not supported",
                    hint="Aggregate the private rows first: set operations of aggregated rows are fine.",
                    span=span_of(query),
                )
            for side in (query.left, query.right):
                self.split_block(side, env)
            if top:
                hint = "Aggregate them, for example: SELECT COUNT(*) FROM (…) AS t."
                raise NotPrivate("this would return single private rows", hint=hint, span=span_of(query))
            return Block(Ownership.OWNED, query)
        sides = [self.split_block(side, env) for side in (query.left, query.right)]
        query.set("this", restore_parentheses(query.left, sides[0].post))
        query.set("expression", restore_parentheses(query.right, sides[1].post))
        self._split_nested(query, env, skip={"this", "expression"})
        released = any(side.ownership is Ownership.RELEASED for side in sides)
        outputs = unify_outputs(sides[0].outputs, sides[1].outputs)
        return Block(Ownership.RELEASED if released else Ownership.PUBLIC, query, (), outputs)

    def _split_select(self, select: exp.Select, env: Environment, top: bool) -> Block:
        check_clauses(select)
        sources = sources_of(select)
        kinds = [self._source_ownership(source, env) for source in sources]
        if Ownership.OWNED not in kinds:
            distinct = self._find_distinct_count(select, env)
            if distinct is not None:
                return self._split_select(distinct, env, top)
            spans = [span_of(source) for source in sources]
            blocks = [self._split_source(source, env) for source in sources]
            strip_column_schemas(select)
            if any(map(has_aggregate, select.expressions)):
                self.state.counted += find_counted_keys(zip(sources, spans, strict=True), env, self.state.releases)
            name_outputs(select)  # by what was written, before sub-selects are replaced
            self._split_nested(select, env)
            outputs, ratios = annotate_outputs(select, sources, blocks)
            released = any(block.ownership is Ownership.RELEASED for block in blocks)
            self.state.warnings += warn_of_columns(ratios) if released else ()
            return Block(Ownership.RELEASED if released else Ownership.PUBLIC, select, (), outputs)
        if _has_distinct_on(select):
            rewrite_distinct_on(select)
        for source in sources:
            self._split_owned_source(source, env)
        self.state.scopes[self.state.keep(select)] = self._owned_queries(env)
        binder = self.make_binder()
        if not is_release_select(select):
            return describe_or_refuse_rows(select, binder, self.state) if top else Block(Ownership.OWNED, select)
        if binder.is_per_unit(select):
            if top:
                raise single_unit_group_error(select)
            return Block(Ownership.OWNED, select)
        return self._split_release(select, env, top)

    def _find_distinct_count(self, select: exp.Select, env: Environment) -> exp.Select | None:
        """COUNT(*) of SELECT DISTINCT, as COUNT(DISTINCT …): a list of keys that are selected is shorter than they are.

            SELECT COUNT(*) FROM (SELECT DISTINCT note FROM visits) AS t   →  SELECT COUNT(DISTINCT (note)) FROM visits

        Columns that all have a list of values, from the schema or from public rows, stay what they are: of these a list
        of groups is counted, which has less noise.
        """
        inner = _counted_distinct_rows(select)
        if inner is None or self.ownership_of(inner, env) is not Ownership.RELEASED:
            return None
        if Ownership.OWNED not in [self._source_ownership(source, env) for source in sources_of(inner)]:
            return None
        _, scope = self._bind_sources(inner, env)
        group = inner.args.get("group")
        columns = [item.unalias() for item in (inner if group is None else group).expressions]
        if all(has_own_list(column, scope, self.state.schema) for column in columns):
            return None
        counted = inner.copy()
        counted.set("distinct", None)
        counted.set("group", None)
        row = exp.Tuple(expressions=[column.copy() for column in columns])  # so that NULL counts as a value, too
        count = exp.Count(this=exp.Distinct(expressions=[row]))
        name = select.expressions[0].alias or output_name(select.expressions[0])
        counted.set("expressions", [exp.alias_(count, name, quoted=True)])
        self.state.environments[self.state.keep(counted)] = env
        return counted

    def make_binder(self) -> Binder:
        outside = SubqueryParameters(self.state, self.split_block, self.ownership_of, self.find_named_query)
        return Binder(self.state.schema, self.state.scopes, outside=outside)

    def _owned_queries(self, env: Environment) -> dict[str, exp.Query]:
        """The CTEs and views over private rows that a block may name."""
        return {n: b.post for n, b in (self.state.views | env).items() if b.ownership is Ownership.OWNED}

    def _split_owned_source(self, source: exp.Expr, env: Environment) -> None:
        """Sub-selects over private rows in FROM have blocks of their own, whose scopes the binder asks for."""
        if is_join_tree(source):
            for leaf in join_leaves(source.this):
                self._split_owned_source(leaf, env)
        elif isinstance(source, exp.Subquery) and self.ownership_of(source.this, env) is Ownership.OWNED:
            self.split_block(source.this, env)

    def _split_release(self, select: exp.Select, env: Environment, top: bool) -> Block:
        name = self.state.next_release_name()
        binder = self.make_binder()
        if has_randomized_call(select):
            return bind_randomized_block(select, binder, name, self.state)
        ends = DeclaredRanges(self.state.schema, self.ranges) if id(select) in self.shown else None
        block = ReleaseBlock(
            select, binder, name, lambda node, outer: self._split_subquery(node, env, outer), top, ends
        )
        scanned = partial(scan_declared_tables, schema=self.state.schema)
        if self.division is IntegerDivision.REFUSE:
            block.refuse_truncated_ratios(scanned, self.state.statement)
        self.state.warnings += block.warnings
        assert isinstance(binder.outside, SubqueryParameters)
        holes = tuple(binder.outside.found)
        lookup = bool(select.meta.get(LOOKUP_KEY))
        notices = block.notices
        if narrows_integers(block.aggregate):
            notices = (*notices, *find_narrowing_notices(block.aggregate, scanned))
        self.state.releases[name] = BoundRelease(name, block.aggregate, block.columns, holes, notices, lookup)
        return Block(Ownership.RELEASED, block.post, block.errors, block.outputs)

    def _split_subquery(self, node: exp.Expr, env: Environment, outer: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
        """A sub-select within post-processing; `outer` makes post-processing of what it reads of the block around."""
        query = node.this if isinstance(node, exp.Subquery) else node
        correlated = self._find_correlated(query, env) if isinstance(query, exp.Select) else None
        if correlated is not None and isinstance(node, exp.Subquery):
            block = self.split_block(correlated.select, env)
            return look_up_group(block.post, tuple(outer(expr) for expr in correlated.outer), correlated.counts)
        block = self.split_block(query, env)
        if block.ownership is Ownership.OWNED:
            raise must_aggregate_error(query, node)
        return exp.Subquery(this=block.post) if isinstance(node, exp.Subquery) else block.post

    def _find_correlated(self, select: exp.Select, env: Environment) -> DecorrelatedSelect | None:
        if self.ownership_of(select, env) is not Ownership.RELEASED or not is_release_select(select):
            return None
        if Ownership.OWNED not in [self._source_ownership(source, env) for source in sources_of(select)]:
            return None
        outside, scope = self._bind_sources(select, env)
        return outside.group_by_correlation(select, scope)

    def _bind_sources(self, select: exp.Select, env: Environment) -> tuple[SubqueryParameters, Scope]:
        """What the names of a block's FROM mean."""
        bare = exp.select("*")
        bare.set("from_", select.args["from_"].copy())
        bare.set("joins", [join.copy() for join in select.args.get("joins") or ()])
        self.state.environments[self.state.keep(bare)] = env
        self.state.scopes[self.state.keep(bare)] = self._owned_queries(env)
        binder = self.make_binder()
        assert isinstance(binder.outside, SubqueryParameters)
        return binder.outside, binder.bind_rows(bare).scope

    # --- whose rows --------------------------------------------------------------------------------------------------

    def ownership_of(self, query: exp.Expr, env: Environment) -> Ownership:
        """What a query would be, before anything is made of it."""
        if id(query) in self.state.inner:  # it has been made into something
            return self.state.inner[id(query)][1].ownership
        if isinstance(query, exp.Subquery):
            return self.ownership_of(query.this, env)
        if isinstance(query, exp.Table | exp.Values | exp.Unnest | exp.Lateral):
            return self._source_ownership(query, env)
        if not isinstance(query, exp.Select | exp.SetOperation):
            return Ownership.PUBLIC
        env = self._add_cte_ownerships(query, env)
        if isinstance(query, exp.SetOperation):
            return combine_ownership([self.ownership_of(side, env) for side in (query.left, query.right)])
        kinds = [self._source_ownership(source, env) for source in sources_of(query)]
        if Ownership.OWNED in kinds and _has_distinct_on(query):
            rewrite_distinct_on(query)
        if Ownership.OWNED not in kinds or not is_release_select(query):
            return combine_ownership(kinds)
        self.state.scopes.setdefault(self.state.keep(query), self._owned_queries(env))
        self.state.environments.setdefault(self.state.keep(query), env)
        return Ownership.OWNED if self.make_binder().is_per_unit(query) else Ownership.RELEASED

    def _add_cte_ownerships(self, query: exp.Query, env: Environment) -> Environment:
        with_ = query.args.get("with_")
        if with_ is None:
            return env
        for cte in with_.expressions:
            if with_.args.get("recursive") and reads_itself(cte):
                env = env | {cte.alias.lower(): Block(Ownership.PUBLIC, cte.this)}
            env = env | {cte.alias.lower(): Block(self.ownership_of(cte.this, env), cte.this)}
        return env

    def _source_ownership(self, source: exp.Expr, env: Environment) -> Ownership:
        if is_join_tree(source):
            return combine_ownership([self._source_ownership(leaf, env) for leaf in join_leaves(source.this)])
        if isinstance(source, exp.Subquery):
            return self.ownership_of(source.this, env)
        if not isinstance(source, exp.Table) or isinstance(source.this, exp.Func):
            return Ownership.PUBLIC
        named_query = self.find_named_query(source, env)
        if named_query is not None:
            return named_query.ownership
        if source.meta.get("read"):  # a name of ours stands there already
            return Ownership.RELEASED if source.name in self.state.releases else Ownership.PUBLIC
        schema = self.state.schema
        declared = None if source.db else schema.table(source.name)  # which no catalog's table has the name of
        if declared is None:
            if catalog_schema_of(schema, source.db, source.name) or find_synthetic_table(schema, source):
                return Ownership.PUBLIC
            declared = require_table(schema, source)
        return Ownership.PUBLIC if declared.public or self.state.preview else Ownership.OWNED

    def find_named_query(self, source: exp.Table, env: Environment) -> Block | None:
        """The CTE or view that a name means; a view is read where it is first named."""
        name = source.name.lower()
        if not source.db and name in env:
            return env[name]
        view = self.state.schema.view(name) if source.db.lower() in ("", "public", "main") else None
        if view is None:
            return None
        if name not in self.state.views:
            tree = self.prepare_tree(parse_query(view.sql))
            for node in tree.walk():  # positions in another text
                node.meta.pop("start", None)
            block = self.state.views[name] = self.split_block(tree, {})
            if block.ownership is not Ownership.OWNED:
                alias = exp.TableAlias(this=exp.to_identifier(view.name, quoted=True))
                self.state.kept_views.append(exp.CTE(this=block.post, alias=alias))
        return self.state.views[name]

    # --- sources of post-processing and what is nested ---------------------------------------------------------------

    def _split_source(self, source: exp.Expr, env: Environment) -> Block:
        """A source that is not owned; sub-selects and public tables are replaced by what stands for them."""
        if is_join_tree(source):
            blocks = [self._split_source(leaf, env) for leaf in join_leaves(source.this)]
            return Block(combine_ownership([block.ownership for block in blocks]), exp.select())
        if isinstance(source, exp.Subquery):
            block = self.split_block(source.this, env)
            source.set("this", block.post)
            return block
        if isinstance(source, exp.Table) and not isinstance(source.this, exp.Func):
            named_query = self.find_named_query(source, env)
            if named_query is not None:  # it stands beside the statement under its own name
                strip_schema(source)
            return named_query or read_public_source(source, self.state, self.who)
        check_allowed_source(source)
        for child in (lateral_values(source) or source).walk():
            if isinstance(child, exp.Query):
                raise Unsupported("a sub-select cannot stand here", span=span_of(child))
            check_allowed_function(child)
        return Block(Ownership.PUBLIC, exp.select("*").from_(source.copy()), (), infer_source_outputs(source))

    def _split_nested(self, query: exp.Query, env: Environment, skip: frozenset[str] | set[str] = frozenset()) -> None:
        """Sub-selects in the expressions of a post-processing block, and the functions that it may not call."""
        for key, value in list(query.args.items()):
            if key in skip or key in ("from_", "with_"):
                continue
            for item in value if isinstance(value, list) else [value]:
                if isinstance(item, exp.Join):
                    for part in (item.args.get("on"), *(item.args.get("using") or ())):
                        self._split_nested_expr(part, env)
                elif isinstance(item, exp.Expr):
                    self._split_nested_expr(item, env)

    def _split_nested_expr(self, node: exp.Expr | None, env: Environment) -> None:
        if node is None:
            return
        if isinstance(node, exp.Subquery | exp.Query):
            replacement = self._split_subquery(node, env, lambda outer: outer)
            if replacement is not node:
                node.replace(replacement)
            return
        if isinstance(node, exp.Table):
            raise UnknownTable("a table cannot stand here", span=span_of(node))
        check_allowed_function(node)
        for child in list(node.iter_expressions()):
            self._split_nested_expr(child, env)


def _inline_counted_cte(query: exp.Query) -> None:
    """WITH t AS (SELECT DISTINCT …) SELECT COUNT(*) FROM t: the CTE stands where it is read, once."""
    with_, from_ = query.args.get("with_"), query.args.get("from_")
    if with_ is None or from_ is None or not with_.expressions:
        return
    source = from_.this
    clauses = {key for key, value in query.args.items() if value}
    if clauses != {"expressions", "from_", "with_"} or with_.args.get("recursive") or not isinstance(source, exp.Table):
        return
    cte, name = with_.expressions[-1], source.name.lower()
    readers = [table for table in query.find_all(exp.Table) if table.name.lower() == name]
    names = [other.alias.lower() for other in with_.expressions]
    if cte.alias.lower() != name or names.count(name) > 1 or len(readers) > 1 or name.startswith("_"):
        return
    if cte.args["alias"].args.get("columns"):
        return
    parts = ((with_, {"expressions"}), (cte, {"this", "alias"}), (from_, {"this"}), (source, {"this", "alias"}))
    if not all(_has_only(part, allowed) for part, allowed in parts):
        return
    alias = source.args.get("alias") or exp.TableAlias(this=exp.to_identifier(source.name, quoted=True))
    inlined = exp.From(this=exp.Subquery(this=cte.this.copy(), alias=alias.copy()))
    counted = exp.Select(expressions=[item.copy() for item in query.expressions])
    counted.set("from_", inlined.copy())
    if _counted_distinct_rows(counted) is not None:
        query.set("from_", inlined)
        cte.pop()
        query.set("with_", with_ if with_.expressions else None)


def _counted_distinct_rows(select: exp.Select) -> exp.Select | None:
    """The SELECT DISTINCT, or GROUP BY, of columns whose rows a block counts, where it does nothing else."""
    from_ = select.args.get("from_")
    source = None if from_ is None else from_.this
    clauses = {key for key, value in select.args.items() if value}
    if clauses != {"expressions", "from_"} or len(select.expressions) != 1 or not isinstance(source, exp.Subquery):
        return None
    item, inner = select.expressions[0].unalias(), source.this
    if not isinstance(item, exp.Count) or not isinstance(item.this, exp.Star) or not isinstance(inner, exp.Select):
        return None
    read: list[tuple[exp.Expr, set[str]]] = [
        (item, {"this", "big_int"}),
        (item.this, set()),
        (source, {"this", "alias"}),
    ]
    if not all(_has_only(part, allowed) for part, allowed in read):  # what is left out here would be left unsaid
        return None
    group, items = inner.args.get("group"), [each.unalias() for each in inner.expressions]
    keys = items if group is None else group.expressions
    clauses = {key for key, value in inner.args.items() if value}
    plain = clauses <= {"expressions", "distinct", "group", "from_", "joins", "where"} and not _has_distinct_on(inner)
    plain = plain and (group is None or not any(value for key, value in group.args.items() if key != "expressions"))
    columns = all(isinstance(key, exp.Column) and not key.is_star for key in keys) and all(
        item in keys for item in items
    )
    return inner if plain and columns and len(clauses & {"distinct", "group"}) == 1 else None


def _has_only(node: exp.Expr, allowed: set[str]) -> bool:
    return {key for key, value in node.args.items() if value} <= allowed


def _has_distinct_on(select: exp.Select) -> bool:
    distinct = select.args.get("distinct")
    return isinstance(distinct, exp.Distinct) and distinct.args.get("on") is not None


# --- tables that post-processing reads whole -------------------------------------------------------------------------


SCHEMA_NAMES = ("public", "main", "information_schema", "pg_catalog")


def read_public_source(source: exp.Table, state: SplitState, identity: Identity) -> Block:
    """A public table, or one of the catalog: read whole into the sandbox, under a name of ours.

    Of a preview also a private one: then made-up rows are read, under a `dummy_table_name`, and no row of the table.
    """
    catalog_schema = catalog_schema_of(state.schema, source.db, source.name) or ""
    synthetic = find_synthetic_table(state.schema, source)
    if synthetic is not None:
        catalog_schema, table = CREATED_SCHEMA, source.name
        columns = tuple(Field(c.name, c.type) for c in synthetic.columns)
    elif catalog_schema:
        catalog_table = find_catalog_table(state.schema, identity, catalog_schema, source.name.lower())
        if catalog_table is None:
            raise UnknownTable(f'relation "{source.db}.{source.name}" does not exist',
                               hint=f"Known of it: {', '.join(catalog_table_names(catalog_schema))}.",
                               span=span_of(source))  # fmt: skip
        table, columns = source.name.lower(), tuple(Field(name, type_) for name, type_ in catalog_table.columns)
    else:
        check_qualifier(source)
        declared = require_table(state.schema, source)
        if not declared.public:
            return _read_under_name(dummy_table_name(declared, state), source, declared.columns)
        table, columns = declared.name, tuple(Field(c.name, c.type) for c in declared.columns)
    read = state.reads.setdefault(
        (catalog_schema, table), PublicRead(f"_p{len(state.reads) + 1}", catalog_schema, table, columns)
    )
    return _read_under_name(read.name, source, columns)


def strip_schema(source: exp.Table) -> None:
    """ "public"."v" is "v" after the split; what it is called stays."""
    source.set("db", None)
    source.set("catalog", None)


def strip_column_schemas(select: exp.Select) -> None:
    """ "public"."wards"."ward" is "wards"."ward" after the split, where tables have no schema."""
    for column in select.find_all(exp.Column):
        if column.db.lower() in SCHEMA_NAMES:
            column.set("db", None)
            column.set("catalog", None)


def _read_under_name(name: str, source: exp.Table, columns: Sequence[Field | Column]) -> Block:
    if source.args.get("alias") is None:
        source.set("alias", exp.TableAlias(this=exp.to_identifier(source.name, quoted=True)))
    source.meta["read"] = True
    source.set("this", exp.to_identifier(name))
    source.set("db", None)
    source.set("catalog", None)
    outputs = tuple(Output(column.name, column.type) for column in columns)
    return Block(Ownership.PUBLIC, exp.select("*").from_(source.copy()), (), outputs)
