"""`dpsql completion`: what can follow on a command line, read off the parser, as a script for a shell."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from dpsql.interfaces.cli.arguments import build_parser, subcommands_of
from dpsql.interfaces.display.terminal import Screen

# What can follow on a command line, as shells need to know it.


class ValueKind(Enum):
    """What an option or an argument takes, as far as a shell can offer something for it."""

    NOTHING = "nothing"
    TEXT = "text"
    FILE = "file"
    FOLDER = "folder"
    SCHEMA = "schema"
    USER = "user"
    SETTING = "setting"
    TABLE = "table"
    CHOICE = "choice"


SETTING_NAMES = (
    "epsilon", "delta", "contributions.rows", "contributions.groups", "noise", "nonnegative", "derive", "max_error",
    "max_relative_error", "confidence", "ranges", "mechanism", "proposal", "integer_division", "overshoot",
    "empty_groups",
)  # fmt: skip
"""What `--set` can name: as `SHOW ALL` lists them."""


@dataclass(frozen=True)
class ArgumentSpec:
    """An option by its names, or an argument, which has none."""

    names: tuple[str, ...]
    takes: ValueKind
    choices: tuple[str, ...]
    help: str
    several: bool = False


@dataclass(frozen=True)
class CommandNode:
    """The words so far; the words that may come next with what they do, or else options and arguments."""

    words: tuple[str, ...]
    below: dict[str, str]
    options: tuple[ArgumentSpec, ...]
    arguments: tuple[ArgumentSpec, ...]

    @property
    def path(self) -> str:
        return "".join(f"/{word}" for word in self.words)


# Completion scripts for bash, zsh and fish.
#
# Each walks the words before the cursor to a command's path, such as /answers/list, counting the arguments that it has;
# a schema where a command may stand is an argument of /repl. Then it offers what may come there.

_LIST_USERS = """command dpsql user list "$word" --json 2>/dev/null | sed -n 's/^ *"user": "\\(.*\\)",$/\\1/p'"""
_LIST_TABLES = (
    """command dpsql check "$word" --no-data --json 2>/dev/null"""
    """ | sed -n '/^  "declared": \\[/,/\\]/s/^    "\\(.*\\)",\\{0,1\\}$/\\1/p'"""
)


def render_bash_script(nodes: Sequence[CommandNode]) -> str:
    offers = {
        ValueKind.TEXT: ":",
        ValueKind.FILE: "_dpsql_files",
        ValueKind.FOLDER: "_dpsql_folders",
        ValueKind.SCHEMA: "_dpsql_schemas",
        ValueKind.USER: '_dpsql_words "$(_dpsql_users)"',
        ValueKind.TABLE: '_dpsql_words "$(_dpsql_tables)"',
        ValueKind.SETTING: "_dpsql_settings",
    }
    words = [
        f"        {_case_pattern(node)}) _dpsql_words {_quote_shell(chr(10).join(node.below))} ;;"
        for node in nodes
        if node.below
    ]
    options = [f"        {_case_pattern(node)}) {_offer_words(_option_names(node.options))} ;;" for node in nodes]
    return f"""\
# Completion of dpsql for bash, made by: dpsql completion bash
_dpsql_words() {{ local IFS=$'\\n'; COMPREPLY+=($(compgen -W "$1" -- "$cur")); }}
_dpsql_files() {{ local IFS=$'\\n'; compopt -o filenames 2>/dev/null; COMPREPLY+=($(compgen -f -- "$cur")); }}
_dpsql_folders() {{ local IFS=$'\\n'; compopt -o filenames 2>/dev/null; COMPREPLY+=($(compgen -d -- "$cur")); }}
_dpsql_schemas() {{
    local IFS=$'\\n'
    compopt -o filenames 2>/dev/null
    COMPREPLY+=($(compgen -f -X '!*.yaml' -- "$cur"; compgen -f -X '!*.yml' -- "$cur"; compgen -d -- "$cur"))
}}
_dpsql_users() {{
    local word
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        word=${{word/#\\~/$HOME}}
        case $word in *.yaml|*.yml) {_LIST_USERS}; return ;; esac
    done
}}
_dpsql_tables() {{
    local word
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        word=${{word/#\\~/$HOME}}
        case $word in *.yaml|*.yml) {_LIST_TABLES}; return ;; esac
    done
}}
_dpsql_settings() {{
    [[ ${{line[n-1]}} == *=* ]] && return
    compopt -o nospace 2>/dev/null
    {_offer_words(f"{name}=" for name in SETTING_NAMES)}
}}
_dpsql() {{
    local cur=${{COMP_WORDS[COMP_CWORD]}} prev at= taken=0 skip= glue= word i n=0
    local -a line
    COMPREPLY=()
    # readline cuts words at = and at colons: --user=ana is --user and ana, a setting is one word again.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word=${{COMP_WORDS[i]}}
        if [[ $n -gt 0 && $word == = && ${{line[n-1]}} == --* ]]; then
            ((i < COMP_CWORD)) || line[n++]=
        elif [[ $n -gt 0 && $word =~ ^[=:]+$ ]]; then
            line[n-1]+=$word glue=1
        elif [[ -n $glue ]]; then
            line[n-1]+=$word glue=
        else
            line[n++]=$word
        fi
    done
    [[ $cur =~ ^[=:]+$ ]] && cur=
    prev=${{line[n-2]}}
    for ((i = 1; i < n - 1; i++)); do
        word=${{line[i]}}
{_render_word_loop(nodes, "            ")}
    done
    case $at:$prev in
{_render_option_cases(nodes, offers)}
    esac
    if [[ $cur == -* ]]; then
        case $at in
{_join_lines(options)}
        esac
        return
    fi
    case $at in
{_join_lines(words)}
    esac
    case $at:$taken in
        :0) _dpsql_schemas ;;
{_render_argument_cases(nodes, offers)}
    esac
}}
complete -F _dpsql dpsql
"""


def render_zsh_script(nodes: Sequence[CommandNode]) -> str:
    offers = {
        ValueKind.TEXT: ":",
        ValueKind.FILE: "_files",
        ValueKind.FOLDER: "_files -/",
        ValueKind.SCHEMA: "_files -g '*.(yaml|yml)'",
        ValueKind.USER: "_dpsql_users",
        ValueKind.TABLE: "_dpsql_tables",
        ValueKind.SETTING: f"compadd -S '' -- {' '.join(f'{name}=' for name in SETTING_NAMES)}",
    }
    words = [
        f"        {_case_pattern(node)}) found=({_describe_words(node.below.items())}) ;;"
        for node in nodes
        if node.below
    ]
    options = [
        f"        {_case_pattern(node)}) found=({_describe_words(_options_with_help(node.options))}) ;;"
        for node in nodes
    ]
    return f"""\
#compdef dpsql
# Completion of dpsql for zsh, made by: dpsql completion zsh
_dpsql_users() {{
    local word
    for word in ${{words[2,CURRENT-1]}}; do
        word=${{word/#\\~/$HOME}}
        case $word in *.yaml|*.yml) compadd -- ${{(f)"$({_LIST_USERS})"}}; return ;; esac
    done
}}
_dpsql_tables() {{
    local word
    for word in ${{words[2,CURRENT-1]}}; do
        word=${{word/#\\~/$HOME}}
        case $word in *.yaml|*.yml) compadd -- ${{(f)"$({_LIST_TABLES})"}}; return ;; esac
    done
}}
_dpsql_words() {{ compadd -- ${{(f)1}}; }}
_dpsql() {{
    local cur=${{words[CURRENT]}} prev=${{words[CURRENT-1]}} at= taken=0 skip= word i
    local -a found
    for ((i = 2; i < CURRENT; i++)); do
        word=${{words[i]}}
{_render_word_loop(nodes, "            ")}
    done
    if [[ $cur == --*=* ]]; then
        prev=${{cur%%=*}}
        cur=${{cur#*=}}
        compset -P 1 '*='
    fi
    case $at:$prev in
{_render_option_cases(nodes, offers)}
    esac
    if [[ $cur == -* ]]; then
        case $at in
{_join_lines(options)}
        esac
        _describe -o option found
        return
    fi
    case $at in
{_join_lines(words)}
    esac
    (( $#found )) && _describe command found
    case $at:$taken in
        :0) {offers[ValueKind.SCHEMA]} ;;
{_render_argument_cases(nodes, offers)}
    esac
}}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _dpsql "$@"; else compdef _dpsql dpsql; fi
"""


def render_fish_script(nodes: Sequence[CommandNode]) -> str:
    offers = {
        ValueKind.TEXT: "-x",
        ValueKind.FILE: "-rF",
        ValueKind.FOLDER: "-x -a '(__fish_complete_directories)'",
        ValueKind.SCHEMA: "-x -a '(__dpsql_schemas)'",
        ValueKind.USER: "-x -a '(__dpsql_users)'",
        ValueKind.TABLE: "-x -a '(__dpsql_tables)'",
        ValueKind.SETTING: f"-x -a {_quote_shell(' '.join(f'{name}=' for name in SETTING_NAMES))}",
    }
    lines = [f"complete -c dpsql -n '__dpsql_at \"\" 0' {offers[ValueKind.SCHEMA]}"]
    for node in nodes:
        here = f'complete -c dpsql -n \'__dpsql_at "{node.path}"'
        lines += [f"{here}' -x -a {word} -d {_quote_shell(what)}" for word, what in node.below.items()]
        for option in node.options:
            names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
            lines.append(f"{here}' {names} {_render_fish_offer(option, offers)} -d {_quote_shell(option.help)}")
        for number, argument in enumerate(node.arguments):
            if argument.takes is not ValueKind.TEXT:
                there = f"{here}'" if argument.several and number == 0 else f"{here} {number}'"
                lines.append(f"{there} {_render_fish_offer(argument, offers)}")
    first_words = f"{' '.join(nodes[0].below)} {' '.join(_option_names(nodes[0].options))}"
    return f"""\
# Completion of dpsql for fish, made by: dpsql completion fish
function __dpsql_path
    set -l at ""
    set -l taken 0
    set -l skip ""
    set -l line (commandline -opc)
    for word in $line[2..-1]
        if test -n "$skip"
            set skip ""
            continue
        end
        if test -z "$at"; and not contains -- $word {first_words}
            set at /repl
        end
        switch "$at:$word"
            case {" ".join(_quote_shell(step) for step in _list_steps(nodes))}
                set at "$at/$word"
            case {" ".join(_quote_shell(option_path) for option_path in _list_valued_options(nodes))}
                set skip 1
            case '*:-*'
            case '*'
                set taken (math $taken + 1)
        end
    end
    echo "$at"
    echo $taken
end
function __dpsql_at
    set -l found (__dpsql_path)
    test "$found[1]" = "$argv[1]"; or return 1
    test (count $argv) -lt 2; or test "$found[2]" = "$argv[2]"
end
function __dpsql_schemas
    for path in (commandline -ct)*
        switch $path
            case '*.yaml' '*.yml'
                echo $path
            case '*'
                test -d $path; and echo $path/
        end
    end
end
function __dpsql_users
    for word in (commandline -opc)
        switch $word
            case '*.yaml' '*.yml'
                {_LIST_USERS}
                return
        end
    end
end
function __dpsql_tables
    for word in (commandline -opc)
        switch $word
            case '*.yaml' '*.yml'
                {_LIST_TABLES}
                return
        end
    end
end
complete -c dpsql -f
{_join_lines(lines)}
"""


# --- what the scripts of bash and zsh share --------------------------------------------------------------------------


def _render_word_loop(nodes: Sequence[CommandNode], indent: str) -> str:
    """The loop's body: the word goes on to a command, is an option, is an option's value, or is an argument."""
    top = nodes[0]
    first_words = "|".join((*top.below, *_option_names(top.options)))
    lines = (
        "if [[ -n $skip ]]; then skip=; continue; fi",
        f"case $at:$word in :{'|:'.join(first_words.split('|'))}) ;; :*) at=/repl ;; esac",
        "case $at:$word in",
        f"    {'|'.join(_list_steps(nodes))}) at=$at/$word ;;",
        f"    {'|'.join(_list_valued_options(nodes))}) skip=1 ;;",
        "    *:-*) ;;",
        "    *) ((taken += 1)) ;;",
        "esac",
    )
    return "\n".join(indent[4:] + line for line in lines)


def _list_steps(nodes: Sequence[CommandNode]) -> Iterator[str]:
    yield from (f"{node.path}:{word}" for node in nodes for word in node.below)


def _list_valued_options(nodes: Sequence[CommandNode]) -> Iterator[str]:
    for node in nodes:
        for option in node.options:
            if option.takes is not ValueKind.NOTHING:
                yield from (f"{node.path}:{name}" for name in option.names)


def _render_option_cases(nodes: Sequence[CommandNode], offers: dict[ValueKind, str]) -> str:
    """What an option takes, by the option before the cursor."""
    lines = []
    for node in nodes:
        for option in node.options:
            if option.takes is not ValueKind.NOTHING:
                names = "|".join(f"{node.path}:{name}" for name in option.names)
                lines.append(f"        {names}) {_render_offer(option, offers)}; return ;;")
    return _join_lines(lines)


def _render_argument_cases(nodes: Sequence[CommandNode], offers: dict[ValueKind, str]) -> str:
    return _join_lines(
        f"        {node.path}:{'*' if argument.several else number}) {_render_offer(argument, offers)} ;;"
        for node in nodes
        for number, argument in enumerate(node.arguments)
        if argument.takes is not ValueKind.TEXT
    )


def _render_offer(argument: ArgumentSpec, offers: dict[ValueKind, str]) -> str:
    if argument.takes is ValueKind.CHOICE:
        return _offer_words(argument.choices)
    return offers[argument.takes]


def _offer_words(words: Iterable[str]) -> str:
    """A call of the function that offers words, one a line."""
    return f"_dpsql_words {_quote_shell(chr(10).join(words))}"


def _render_fish_offer(argument: ArgumentSpec, offers: dict[ValueKind, str]) -> str:
    match argument.takes:
        case ValueKind.NOTHING:
            return "-f"
        case ValueKind.CHOICE:
            return f"-x -a {_quote_shell(' '.join(argument.choices))}"
        case _:
            return offers[argument.takes]


def _case_pattern(node: CommandNode) -> str:
    return node.path or '""'


def _option_names(options: Iterable[ArgumentSpec]) -> Iterator[str]:
    yield from (name for option in options for name in option.names)


def _options_with_help(options: Iterable[ArgumentSpec]) -> Iterator[tuple[str, str]]:
    yield from ((name, option.help) for option in options for name in option.names)


def _describe_words(words: Iterable[tuple[str, str]]) -> str:
    """As zsh reads them: a colon comes before what the word does."""
    return " ".join(_quote_shell(f"{word}:{what}") for word, what in words)


def _quote_shell(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _join_lines(lines: Iterable[str]) -> str:
    return "\n".join(lines)


_SCRIPTS = {"bash": render_bash_script, "zsh": render_zsh_script, "fish": render_fish_script}
_KIND_BY_METAVAR = {
    "FILE": ValueKind.FILE,
    "SOURCE": ValueKind.FILE,
    "DIR": ValueKind.FOLDER,
    "SCHEMA": ValueKind.SCHEMA,
    "NAME=VALUE": ValueKind.SETTING,
}


def run(args: argparse.Namespace, screen: Screen) -> None:
    screen.print(_SCRIPTS[args.shell](_add_help_nodes(list_command_nodes(build_parser()))).rstrip("\n"))


def _add_help_nodes(nodes: list[CommandNode]) -> list[CommandNode]:
    """The words after `help` are those of all commands."""
    help_node = next(node for node in nodes if node.words == ("help",))
    help_nodes = [CommandNode(("help", *node.words), node.below, help_node.options, ()) for node in nodes if node.below]
    return [node for node in nodes if node is not help_node] + help_nodes


def list_command_nodes(parser: argparse.ArgumentParser, words: tuple[str, ...] = ()) -> list[CommandNode]:
    """Every command and group of commands, with what may follow it."""
    subcommands = subcommands_of(parser)
    own_node = CommandNode(
        words,
        {word: (inner.description or "").partition("\n")[0].rstrip(".") for word, inner in (subcommands or {}).items()},
        tuple(_argument_spec(action) for action in parser._actions if action.option_strings),
        tuple(
            _argument_spec(action) for action in parser._actions if not action.option_strings and subcommands is None
        ),
    )
    return [
        own_node,
        *(node for word, inner in (subcommands or {}).items() for node in list_command_nodes(inner, (*words, word))),
    ]


def _argument_spec(action: argparse.Action) -> ArgumentSpec:
    what = (action.help or "").replace("%%", "%").partition(";")[0]
    choices = tuple(str(choice) for choice in action.choices or ())
    takes = ValueKind.NOTHING if action.nargs == 0 else _value_kind(action)
    return ArgumentSpec(tuple(action.option_strings), takes, choices, what, action.nargs in ("+", "*"))


def _value_kind(action: argparse.Action) -> ValueKind:
    if action.choices:
        return ValueKind.CHOICE
    if action.dest in ("user", "name"):
        return ValueKind.USER
    if action.dest == "tables":
        return ValueKind.TABLE
    return _KIND_BY_METAVAR.get(str(action.metavar), ValueKind.TEXT)
