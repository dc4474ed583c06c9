"""The prompt on a terminal: keys, colours, several lines, history, completion, and the status line."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import Condition, has_focus
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.output.color_depth import ColorDepth
from prompt_toolkit.styles import Style

from dpsql.base.lexer import Token, TokenKind, split_tokens
from dpsql.base.private_files import open_private_file
from dpsql.errors import Error
from dpsql.interfaces.repl.completion.complete import CompletionNames, complete
from dpsql.interfaces.repl.completion.keywords import FUNCTION_KEYWORDS, KEYWORDS, TYPE_NAMES
from dpsql.interfaces.repl.meta_commands import BARE_WORD_COMMANDS, META_COMMANDS
from dpsql.interfaces.repl.split_input import is_complete

# Colours of typed text. Law: the fragments joined are the text, whatever it is.

HIGHLIGHT_STYLES = (
    "keyword",
    "function",
    "string",
    "number",
    "comment",
    "name",
    "parameter",
    "operator",
    "command",
    "",
)
"""All that `highlight_sql` gives; "" is plain."""

_STYLE_OF_KIND = {
    TokenKind.SPACE: "",
    TokenKind.QUOTED: "name",
    TokenKind.STRING: "string",
    TokenKind.NUMBER: "number",
    TokenKind.COMMENT: "comment",
    TokenKind.PARAMETER: "parameter",
    TokenKind.OPERATOR: "operator",
    TokenKind.MARK: "",
}


def highlight_sql(text: str) -> list[tuple[str, str]]:
    """
    >>> highlight_sql("SELECT count(*)")
    [('keyword', 'SELECT'), ('', ' '), ('function', 'count'), ('', '('), ('operator', '*'), ('', ')')]
    """
    all_tokens = split_tokens(text)
    significant = [
        index for index, token in enumerate(all_tokens) if token.kind not in (TokenKind.SPACE, TokenKind.COMMENT)
    ]
    around = {
        index: (before, after)
        for before, index, after in zip([-1, *significant], significant, [*significant[1:], -1], strict=False)
    }
    fragments: list[tuple[str, str]] = []
    for index, token in enumerate(all_tokens):
        if token.kind is TokenKind.BACKSLASH:
            fragments += _highlight_command(token.text)
        elif token.kind is TokenKind.WORD:
            before, after = around[index]
            fragments.append(
                (_style_word(token, _token_at(all_tokens, before), _token_at(all_tokens, after)), token.text)
            )
        else:
            fragments.append((_STYLE_OF_KIND[token.kind], token.text))
    return fragments


def _token_at(all_tokens: Sequence[Token], index: int) -> Token | None:
    return all_tokens[index] if index >= 0 else None


def _style_word(token: Token, before: Token | None, after: Token | None) -> str:
    word = token.text.lower()
    if before is not None and before.text == ".":
        return ""
    if after is not None and after.text == "(" and (word not in KEYWORDS or word in FUNCTION_KEYWORDS):
        return "function"
    typed = before is not None and (before.text == "::" or before.text.lower() == "as")
    literal = after is not None and after.kind is TokenKind.STRING
    if word in KEYWORDS or (word in TYPE_NAMES and (literal or typed)):
        return "keyword"
    return ""


def _highlight_command(text: str) -> list[tuple[str, str]]:
    """The name, and the rest of the line plain."""
    name = text.split(maxsplit=1)[0]
    return [("command", name), ("", text[len(name) :])] if len(name) < len(text) else [("command", text)]


PROMPT_STYLE = Style.from_dict(
    {
        "keyword": "ansiblue bold",
        "function": "ansicyan",
        "string": "ansigreen",
        "number": "ansimagenta",
        "comment": "ansibrightblack italic",
        "name": "",
        "parameter": "ansiyellow",
        "command": "ansiyellow bold",
        "prompt": "bold",
        "bottom-toolbar": "noreverse ansibrightblack",
    }
)


class _SqlLexer(Lexer):
    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        lines: list[StyleAndTextTuples] = [[]]
        for kind, fragment in highlight_sql(document.text):
            for index, part in enumerate(fragment.split("\n")):
                if index:
                    lines.append([])
                lines[-1].append((f"class:{kind}" if kind else "", part))
        return lambda line: lines[line] if line < len(lines) else []


class _SqlCompleter(Completer):
    """`names` are read from the schema when they are first needed."""

    def __init__(self, names: Callable[[], CompletionNames | None]) -> None:
        self._names = names

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        if complete_event.text_inserted and document.char_before_cursor == ";":
            return  # a statement was ended, and none is begun
        try:
            names = self._names()
        except Error:  # the data cannot be opened, which the prompt ends with
            return
        if names is None:
            return
        for candidate in complete(document.text, document.cursor_position, names, META_COMMANDS):
            yield Completion(
                candidate.text,
                start_position=candidate.start - document.cursor_position,
                display=candidate.display,
                display_meta=candidate.meta,
            )


def make_prompt(
    names: Callable[[], CompletionNames | None],
    status_line: Callable[[int], str],
    on_text_changed: Callable[[str], None],
    history: History,
) -> PromptSession[str]:
    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    session: PromptSession[str] = PromptSession(
        multiline=True,
        lexer=_SqlLexer(),
        completer=_SqlCompleter(names),
        complete_while_typing=True,
        auto_suggest=None if plain else AutoSuggestFromHistory(),  # it would look as if it were typed
        history=history,
        key_bindings=_make_key_bindings(),
        bottom_toolbar=lambda: f" {status_line(get_app().output.get_size().columns - 2)}",
        style=PROMPT_STYLE,
        color_depth=ColorDepth.DEPTH_1_BIT if plain else None,
        enable_open_in_editor=True,
        reserve_space_for_menu=6,
    )
    session.default_buffer.on_text_changed += lambda buffer: on_text_changed(buffer.text)
    return session


def read_entry(session: PromptSession[str], name: str, default: str = "") -> str:
    """One entry: many lines, up to a semicolon."""
    start = f"{name}=> "

    def continuation_prompt(width: int, line: int, wrapped: int | bool) -> str:
        return " " * width if wrapped else f"{name}-> "

    return session.prompt([("class:prompt", start)], prompt_continuation=continuation_prompt, default=default)


def redraw_prompt(session: PromptSession[str]) -> None:
    """Draw the prompt again; may be called from any thread."""
    if session.app.is_running:
        session.app.invalidate()


def interrupt_prompt(session: PromptSession[str], error: BaseException) -> None:
    """From any thread: end the entry that is being typed by an error, which `read_entry` raises."""
    app, loop = session.app, session.app.loop
    if loop is not None and app.is_running:
        loop.call_soon_threadsafe(lambda: app.exit(exception=error) if app.is_running and not app.is_done else None)


def open_history(keep: bool) -> History:
    """What was typed before, in a file that only its owner can read."""
    if not keep:
        return InMemoryHistory()
    root = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    path = Path(os.environ.get("DPSQL_HISTORY") or Path(root) / "dpsql" / "history")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(open_private_file(path, os.O_WRONLY | os.O_APPEND))
    except OSError:
        return InMemoryHistory()
    return FileHistory(path)


# --- keys ------------------------------------------------------------------------------------------------------------


@Condition
def _has_selected_completion() -> bool:
    """A completion is marked: Enter takes it."""
    state = get_app().current_buffer.complete_state
    return state is not None and state.current_completion is not None


@Condition
def _is_ready() -> bool:
    text = get_app().current_buffer.text
    return is_complete(text) or text.strip().lower() in BARE_WORD_COMMANDS


def _make_key_bindings() -> KeyBindings:
    keys = KeyBindings()
    typing = has_focus(DEFAULT_BUFFER)

    @keys.add("enter", filter=typing & _has_selected_completion)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.complete_state = None

    @keys.add("enter", filter=typing & ~_has_selected_completion & _is_ready)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    @keys.add("enter", filter=typing & ~_has_selected_completion & ~_is_ready)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.newline(copy_margin=True)

    @keys.add("escape", "enter", filter=typing)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    @keys.add("tab", filter=typing)
    def _(event: KeyPressEvent) -> None:
        _select_next_completion(event.current_buffer)

    return keys


def _select_next_completion(buffer: Buffer) -> None:
    if buffer.complete_state:
        buffer.complete_next()
    elif not buffer.document.current_line_before_cursor.strip() and "\n" in buffer.text:
        buffer.insert_text("  ")
    else:
        buffer.start_completion(insert_common_part=True)
