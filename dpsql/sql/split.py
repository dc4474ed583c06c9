"""Split a statement at the privacy boundary: releases below, post-processing above.

Every query block is *public*, *owned* or *released*, bottom up. A block over owned rows that aggregates is a
release, unless it groups by the unit; its post-processing is the same block with FROM set to the release, HAVING turned
into WHERE, aggregates and keys replaced by the release's columns. What is above may use all of SQL.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import SqlglotError

from dpsql.catalog.find import place_of
from dpsql.catalog.identity import Identity
from dpsql.errors import InternalError, InvalidSyntax, NotPrivate, UnknownTable, Unsupported
from dpsql.schema.model import Schema
from dpsql.sql.bind import Binder, find_table
from dpsql.sql.block import ErrorBar, ReleaseBlock
from dpsql.sql.block_outputs import same_outputs, source_outputs, typed_outputs
from dpsql.sql.blocks import Block, BoundRelease, Environment, Ownership, PublicRead, State, in_order
from dpsql.sql.choosing import first_of_each
from dpsql.sql.clauses import (
    aggregates,
    asks_randomized,
    check_clauses,
    in_parentheses,
    keep_ctes,
    mixed,
    name_columns,
    one_unit,
    sources_of,
)
from dpsql.sql.correlated import Correlated, decorrelate, looked_up
from dpsql.sql.declared_statistics import with_statistics
from dpsql.sql.dialect import only, span_of
from dpsql.sql.environment import with_environment
from dpsql.sql.holes import Holes, must_aggregate
from dpsql.sql.no_rows import no_rows
from dpsql.sql.outputs import name_outputs
from dpsql.sql.parentheses import is_tree, leaves
from dpsql.sql.parse import parse
from dpsql.sql.pivot import without_pivots
from dpsql.sql.previews import NoPreview, check_preview, finish_preview, has_previews
from dpsql.sql.public_sources import made_table, public_source, without_schema, without_schemas
from dpsql.sql.randomized import randomized_block
from dpsql.sql.ranges import DeclaredEnds, Ranges, shown_blocks
from dpsql.sql.recursive import reads_itself, recursive_block
from dpsql.sql.sandboxed import check_function, check_source
from dpsql.sql.sources import without_database

NOBODY = Identity("", "", "")


@dataclass(frozen=True)
class Split:
    """`releases` stand in order of dependence: a hole's source reads earlier ones only."""

    reads: tuple[PublicRead, ...]
    releases: tuple[BoundRelease, ...]
    post: exp.Query
    errors: tuple[ErrorBar | None, ...]  # per output column, where it is an aggregate as it stands
    made_up: tuple[tuple[str, str], ...] = ()  # of a preview: names, and the private tables that they stand for


def split(
    tree: exp.Query,
    schema: Schema,
    now: dt.datetime | None = None,
    who: Identity = NOBODY,
    ranges: Ranges = Ranges.DECLARED,
) -> Split:
    original = tree.copy() if has_previews(schema) else None
    try:
        return _split(tree, Splitter(State(schema), who, now, ranges))
    except NotPrivate:
        if original is not None:
            with suppress(NoPreview):
                return _split(original, Splitter(State(schema, preview=True), who, now, ranges))
        raise


def _split(tree: exp.Query, splitter: Splitter) -> Split:
    try:
        plain = splitter.plain(tree)
        splitter.shown = shown_blocks(plain)
        block = splitter.query(plain, {}, top=True)
    except SqlglotError:  # a tree that its own generator cannot write
        raise InvalidSyntax("the statement is not understood") from None
    if block.ownership is Ownership.OWNED:
        raise InternalError("a block that gives out rows was not refused")
    state = splitter.state
    if state.preview:
        finish_preview(block, state)
    keep_ctes(block.post, state.kept_views)
    reads, made_up = tuple(state.reads.values()), tuple((name, table) for table, name in state.made_up.items())
    return Split(reads, in_order(state.releases), block.post, block.errors, made_up)


@dataclass
class Splitter:
    state: State
    who: Identity
    now: dt.datetime | None
    ranges: Ranges
    shown: frozenset[int] = frozenset()  # blocks whose MIN and MAX may be declared bounds

    def plain(self, tree: exp.Query) -> exp.Query:
        """A statement, or a view's, without what asks for its surroundings."""
        schema = self.state.schema
        if self.state.preview:
            check_preview(tree)
        tree = with_statistics(with_environment(tree, self.now, self.who), schema)
        return without_pivots(without_database(tree, schema), schema)

    # --- queries -----------------------------------------------------------------------------------------------------

    def query(self, query: exp.Expr, outer: Environment, top: bool = False) -> Block:
        if isinstance(query, exp.Subquery):
            only(query, "this", "alias")
            return self.query(query.this, outer, top)
        if isinstance(query, exp.Table | exp.Values | exp.Unnest | exp.Lateral):  # a source of its own
            return self._source(query, outer)
        if not isinstance(query, exp.Select | exp.SetOperation):
            raise Unsupported("only SELECT, UNION, INTERSECT, EXCEPT and VALUES are queries here", span=span_of(query))
        env, kept = self._ctes(query, outer)
        self.state.environments[id(query)] = env
        if isinstance(query, exp.SetOperation):
            result = self._set_operation(query, env, top)
        else:
            result = self._select(query, env, top)
        if result.ownership is not Ownership.OWNED:
            keep_ctes(result.post, kept)
        return result

    def _ctes(self, query: exp.Query, outer: Environment) -> tuple[Environment, list[exp.CTE]]:
        """Owned CTEs are inlined where they are used; released ones stay, one release however often they are read."""
        with_ = query.args.get("with_")
        if with_ is None:
            return outer, []
        only(with_, "expressions", "recursive")
        env, kept, own = dict(outer), [], set[str]()
        for cte in with_.expressions:
            only(cte, "this", "alias", "materialized")
            alias = cte.args["alias"]
            only(alias, "this", "columns")
            if cte.alias.startswith("_"):
                raise Unsupported("names that begin with _ are taken", span=span_of(alias))
            if cte.alias.lower() in own:
                raise InvalidSyntax(f'the name "{cte.alias}" is used more than once in WITH',
                                    span=span_of(alias), sqlstate="42712")  # fmt: skip
            own.add(cte.alias.lower())
            if alias.args.get("columns"):
                name_columns(cte.this, alias.args["columns"])
            if with_.args.get("recursive") and reads_itself(cte):
                block = recursive_block(cte, env, self.query, self.state)
            else:
                block = self.query(cte.this, env)
            # A name that stood for something else means this from here on; what was read before keeps its meaning.
            env = {name: known for name, known in env.items() if name != cte.alias.lower()}
            env[cte.alias.lower()] = block
            if block.ownership is not Ownership.OWNED:
                kept.append(exp.CTE(this=block.post, alias=exp.TableAlias(this=alias.this)))
        query.set("with_", None)
        return env, kept

    def _set_operation(self, query: exp.SetOperation, env: Environment, top: bool) -> Block:
        kinds = [self.ownership(side, env) for side in (query.left, query.right)]
        if Ownership.OWNED in kinds:
            if kinds != [Ownership.OWNED] * 2:
                raise Unsupported(
                    f"{query.key.upper()} of private rows with others is not supported",
                    hint="Aggregate the private rows first: set operations of aggregated rows are fine.",
                    span=span_of(query),
                )
            for side in (query.left, query.right):
                self.query(side, env)
            if top:
                hint = "Aggregate them, for example: SELECT COUNT(*) FROM (…) AS t."
                raise NotPrivate("this would return single private rows", hint=hint, span=span_of(query))
            return Block(Ownership.OWNED, query)
        sides = [self.query(side, env) for side in (query.left, query.right)]
        query.set("this", in_parentheses(query.left, sides[0].post))
        query.set("expression", in_parentheses(query.right, sides[1].post))
        self._nested(query, env, skip={"this", "expression"})
        released = any(side.ownership is Ownership.RELEASED for side in sides)
        outputs = same_outputs(sides[0].outputs, sides[1].outputs)
        return Block(Ownership.RELEASED if released else Ownership.PUBLIC, query, (), outputs)

    def _select(self, select: exp.Select, env: Environment, top: bool) -> Block:
        check_clauses(select)
        sources = sources_of(select)
        kinds = [self._source_ownership(source, env) for source in sources]
        if Ownership.OWNED not in kinds:
            blocks = [self._source(source, env) for source in sources]
            without_schemas(select)
            name_outputs(select)  # by what was written, before sub-selects are replaced
            self._nested(select, env)
            outputs = typed_outputs(select, sources, blocks)
            released = any(block.ownership is Ownership.RELEASED for block in blocks)
            return Block(Ownership.RELEASED if released else Ownership.PUBLIC, select, (), outputs)
        first_of_each(select)
        for source in sources:
            self._enter_owned(source, env)
        self.state.scopes[id(select)] = self._owned_names(env)
        binder = self.binder()
        if not aggregates(select):
            return no_rows(select, binder, self.state) if top else Block(Ownership.OWNED, select)
        if binder.is_per_unit(select):
            if top:
                raise one_unit(select)
            return Block(Ownership.OWNED, select)
        return self._release(select, env, top)

    def binder(self) -> Binder:
        outside = Holes(self.state, self.query, self.ownership, self.named)
        return Binder(self.state.schema, self.state.scopes, outside=outside)

    def _owned_names(self, env: Environment) -> dict[str, exp.Query]:
        """The CTEs and views over private rows that a block may name."""
        return {n: b.post for n, b in (self.state.views | env).items() if b.ownership is Ownership.OWNED}

    def _enter_owned(self, source: exp.Expr, env: Environment) -> None:
        """Sub-selects over private rows in FROM have blocks of their own, whose scopes the binder asks for."""
        if is_tree(source):
            for leaf in leaves(source.this):
                self._enter_owned(leaf, env)
        elif isinstance(source, exp.Subquery) and self.ownership(source.this, env) is Ownership.OWNED:
            self.query(source.this, env)

    def _release(self, select: exp.Select, env: Environment, top: bool) -> Block:
        name = self.state.release_name()
        binder = self.binder()
        if asks_randomized(select):
            return randomized_block(select, binder, name, self.state)
        ends = DeclaredEnds(self.state.schema, self.ranges) if id(select) in self.shown else None
        block = ReleaseBlock(select, binder, name, lambda node, outer: self._sub_select(node, env, outer), top, ends)
        assert isinstance(binder.outside, Holes)
        holes = tuple(binder.outside.found)
        self.state.releases[name] = BoundRelease(name, block.aggregate, block.columns, holes, block.notices)
        return Block(Ownership.RELEASED, block.post, block.errors, block.outputs)

    def _sub_select(self, node: exp.Expr, env: Environment, outer: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
        """A sub-select within post-processing; `outer` makes post-processing of what it reads of the block around."""
        query = node.this if isinstance(node, exp.Subquery) else node
        found = self._correlated(query, env) if isinstance(query, exp.Select) else None
        if found is not None and isinstance(node, exp.Subquery):
            block = self.query(found.select, env)
            return looked_up(block.post, tuple(outer(expr) for expr in found.outer), found.counts)
        block = self.query(query, env)
        if block.ownership is Ownership.OWNED:
            raise must_aggregate(query, node)
        return exp.Subquery(this=block.post) if isinstance(node, exp.Subquery) else block.post

    def _correlated(self, select: exp.Select, env: Environment) -> Correlated | None:
        if self.ownership(select, env) is not Ownership.RELEASED or not aggregates(select):
            return None
        if Ownership.OWNED not in [self._source_ownership(source, env) for source in sources_of(select)]:
            return None
        bare = exp.select("*")
        bare.set("from_", select.args["from_"].copy())
        bare.set("joins", [join.copy() for join in select.args.get("joins") or ()])
        self.state.environments[id(bare)] = env
        self.state.scopes[id(bare)] = self._owned_names(env)
        scope = self.binder().rows(bare).scope

        def is_inner(column: exp.Column) -> bool:
            return scope.has_source(column.args["table"]) if column.table else scope.lookup(column) is not None

        return decorrelate(select, is_inner)

    # --- whose rows --------------------------------------------------------------------------------------------------

    def ownership(self, query: exp.Expr, env: Environment) -> Ownership:
        """What a query would be, before anything is made of it."""
        if id(query) in self.state.inner:  # it has been made into something
            return self.state.inner[id(query)][1].ownership
        if isinstance(query, exp.Subquery):
            return self.ownership(query.this, env)
        if isinstance(query, exp.Table | exp.Values | exp.Unnest | exp.Lateral):
            return self._source_ownership(query, env)
        if not isinstance(query, exp.Select | exp.SetOperation):
            return Ownership.PUBLIC
        env = self._with_ownerships(query, env)
        if isinstance(query, exp.SetOperation):
            return mixed([self.ownership(side, env) for side in (query.left, query.right)])
        kinds = [self._source_ownership(source, env) for source in sources_of(query)]
        if Ownership.OWNED in kinds:
            first_of_each(query)
        if Ownership.OWNED not in kinds or not aggregates(query):
            return mixed(kinds)
        self.state.scopes.setdefault(id(query), self._owned_names(env))
        self.state.environments.setdefault(id(query), env)
        return Ownership.OWNED if self.binder().is_per_unit(query) else Ownership.RELEASED

    def _with_ownerships(self, query: exp.Query, env: Environment) -> Environment:
        with_ = query.args.get("with_")
        if with_ is None:
            return env
        for cte in with_.expressions:
            if with_.args.get("recursive") and reads_itself(cte):
                env = env | {cte.alias.lower(): Block(Ownership.PUBLIC, cte.this)}
            env = env | {cte.alias.lower(): Block(self.ownership(cte.this, env), cte.this)}
        return env

    def _source_ownership(self, source: exp.Expr, env: Environment) -> Ownership:
        if is_tree(source):
            return mixed([self._source_ownership(leaf, env) for leaf in leaves(source.this)])
        if isinstance(source, exp.Subquery):
            return self.ownership(source.this, env)
        if not isinstance(source, exp.Table) or isinstance(source.this, exp.Func):
            return Ownership.PUBLIC
        known = self.named(source, env)
        if known is not None:
            return known.ownership
        if source.meta.get("read"):  # a name of ours stands there already
            return Ownership.PUBLIC
        if place_of(self.state.schema, source.db, source.name) or made_table(self.state.schema, source):
            return Ownership.PUBLIC
        public = find_table(self.state.schema, source).public or self.state.preview
        return Ownership.PUBLIC if public else Ownership.OWNED

    def named(self, source: exp.Table, env: Environment) -> Block | None:
        """The CTE or view that a name means; a view is read where it is first named."""
        name = source.name.lower()
        if not source.db and name in env:
            return env[name]
        view = self.state.schema.view(name) if source.db.lower() in ("", "public", "main") else None
        if view is None:
            return None
        if name not in self.state.views:
            tree = self.plain(parse(view.sql))
            for node in tree.walk():  # positions in another text
                node.meta.pop("start", None)
            block = self.state.views[name] = self.query(tree, {})
            if block.ownership is not Ownership.OWNED:
                alias = exp.TableAlias(this=exp.to_identifier(view.name, quoted=True))
                self.state.kept_views.append(exp.CTE(this=block.post, alias=alias))
        return self.state.views[name]

    # --- sources of post-processing and what is nested ---------------------------------------------------------------

    def _source(self, source: exp.Expr, env: Environment) -> Block:
        """A source that is not owned; sub-selects and public tables are replaced by what stands for them."""
        if is_tree(source):
            blocks = [self._source(leaf, env) for leaf in leaves(source.this)]
            return Block(mixed([block.ownership for block in blocks]), exp.select())
        if isinstance(source, exp.Subquery):
            block = self.query(source.this, env)
            source.set("this", block.post)
            return block
        if isinstance(source, exp.Table) and not isinstance(source.this, exp.Func):
            known = self.named(source, env)
            if known is not None:  # it stands beside the statement under its own name
                without_schema(source)
            return known or public_source(source, self.state, self.who)
        check_source(source)
        for child in source.walk():
            if isinstance(child, exp.Query):
                raise Unsupported("a sub-select cannot stand here", span=span_of(child))
            check_function(child)
        return Block(Ownership.PUBLIC, exp.select("*").from_(source.copy()), (), source_outputs(source))

    def _nested(self, query: exp.Query, env: Environment, skip: frozenset[str] | set[str] = frozenset()) -> None:
        """Sub-selects in the expressions of a post-processing block, and the functions that it may not call."""
        for key, value in list(query.args.items()):
            if key in skip or key in ("from_", "with_"):
                continue
            for item in value if isinstance(value, list) else [value]:
                if isinstance(item, exp.Join):
                    for part in (item.args.get("on"), *(item.args.get("using") or ())):
                        self._nested_expr(part, env)
                elif isinstance(item, exp.Expr):
                    self._nested_expr(item, env)

    def _nested_expr(self, node: exp.Expr | None, env: Environment) -> None:
        if node is None:
            return
        if isinstance(node, exp.Subquery | exp.Query):
            stands = self._sub_select(node, env, lambda outer: outer)
            if stands is not node:
                node.replace(stands)
            return
        if isinstance(node, exp.Table):
            raise UnknownTable("a table cannot stand here", span=span_of(node))
        check_function(node)
        for child in list(node.iter_expressions()):
            self._nested_expr(child, env)
