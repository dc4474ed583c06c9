"""Completion scripts for bash, zsh and fish.

Each walks the words before the cursor to a command's path, such as /answers/list, counting the arguments that it has; a
schema where a command may stand is an argument of /repl. Then it offers what may come there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from dpsql.cli.words import SETTINGS, Place, Taken, Takes

_USERS = """command dpsql user list "$word" --json 2>/dev/null | sed -n 's/^ *"user": "\\(.*\\)",$/\\1/p'"""
_TABLES = (
    """command dpsql check "$word" --no-data --json 2>/dev/null"""
    """ | sed -n '/^  "declared": \\[/,/\\]/s/^    "\\(.*\\)",\\{0,1\\}$/\\1/p'"""
)


def bash(places: Sequence[Place]) -> str:
    offers = {
        Takes.TEXT: ":",
        Takes.FILE: "_dpsql_files",
        Takes.FOLDER: "_dpsql_folders",
        Takes.SCHEMA: "_dpsql_schemas",
        Takes.USER: '_dpsql_words "$(_dpsql_users)"',
        Takes.TABLE: '_dpsql_words "$(_dpsql_tables)"',
        Takes.SETTING: "_dpsql_settings",
    }
    words = [
        f"        {_pattern(one)}) _dpsql_words {_quoted(chr(10).join(one.below))} ;;" for one in places if one.below
    ]
    options = [f"        {_pattern(one)}) {_words(_names(one.options))} ;;" for one in places]
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
        case $word in *.yaml|*.yml) {_USERS}; return ;; esac
    done
}}
_dpsql_tables() {{
    local word
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        word=${{word/#\\~/$HOME}}
        case $word in *.yaml|*.yml) {_TABLES}; return ;; esac
    done
}}
_dpsql_settings() {{
    [[ ${{line[n-1]}} == *=* ]] && return
    compopt -o nospace 2>/dev/null
    {_words(f"{name}=" for name in SETTINGS)}
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
{_walk(places, "            ")}
    done
    case $at:$prev in
{_after(places, offers)}
    esac
    if [[ $cur == -* ]]; then
        case $at in
{_lines(options)}
        esac
        return
    fi
    case $at in
{_lines(words)}
    esac
    case $at:$taken in
        :0) _dpsql_schemas ;;
{_arguments(places, offers)}
    esac
}}
complete -F _dpsql dpsql
"""


def zsh(places: Sequence[Place]) -> str:
    offers = {
        Takes.TEXT: ":",
        Takes.FILE: "_files",
        Takes.FOLDER: "_files -/",
        Takes.SCHEMA: "_files -g '*.(yaml|yml)'",
        Takes.USER: "_dpsql_users",
        Takes.TABLE: "_dpsql_tables",
        Takes.SETTING: f"compadd -S '' -- {' '.join(f'{name}=' for name in SETTINGS)}",
    }
    words = [f"        {_pattern(one)}) found=({_described(one.below.items())}) ;;" for one in places if one.below]
    options = [f"        {_pattern(one)}) found=({_described(_helped(one.options))}) ;;" for one in places]
    return f"""\
#compdef dpsql
# Completion of dpsql for zsh, made by: dpsql completion zsh
_dpsql_users() {{
    local word
    for word in ${{words[2,CURRENT-1]}}; do
        word=${{word/#\\~/$HOME}}
        case $word in *.yaml|*.yml) compadd -- ${{(f)"$({_USERS})"}}; return ;; esac
    done
}}
_dpsql_tables() {{
    local word
    for word in ${{words[2,CURRENT-1]}}; do
        word=${{word/#\\~/$HOME}}
        case $word in *.yaml|*.yml) compadd -- ${{(f)"$({_TABLES})"}}; return ;; esac
    done
}}
_dpsql_words() {{ compadd -- ${{(f)1}}; }}
_dpsql() {{
    local cur=${{words[CURRENT]}} prev=${{words[CURRENT-1]}} at= taken=0 skip= word i
    local -a found
    for ((i = 2; i < CURRENT; i++)); do
        word=${{words[i]}}
{_walk(places, "            ")}
    done
    if [[ $cur == --*=* ]]; then
        prev=${{cur%%=*}}
        cur=${{cur#*=}}
        compset -P 1 '*='
    fi
    case $at:$prev in
{_after(places, offers)}
    esac
    if [[ $cur == -* ]]; then
        case $at in
{_lines(options)}
        esac
        _describe -o option found
        return
    fi
    case $at in
{_lines(words)}
    esac
    (( $#found )) && _describe command found
    case $at:$taken in
        :0) {offers[Takes.SCHEMA]} ;;
{_arguments(places, offers)}
    esac
}}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _dpsql "$@"; else compdef _dpsql dpsql; fi
"""


def fish(places: Sequence[Place]) -> str:
    offers = {
        Takes.TEXT: "-x",
        Takes.FILE: "-rF",
        Takes.FOLDER: "-x -a '(__fish_complete_directories)'",
        Takes.SCHEMA: "-x -a '(__dpsql_schemas)'",
        Takes.USER: "-x -a '(__dpsql_users)'",
        Takes.TABLE: "-x -a '(__dpsql_tables)'",
        Takes.SETTING: f"-x -a {_quoted(' '.join(f'{name}=' for name in SETTINGS))}",
    }
    lines = [f"complete -c dpsql -n '__dpsql_at \"\" 0' {offers[Takes.SCHEMA]}"]
    for place in places:
        here = f'complete -c dpsql -n \'__dpsql_at "{place.path}"'
        lines += [f"{here}' -x -a {word} -d {_quoted(what)}" for word, what in place.below.items()]
        for option in place.options:
            names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
            lines.append(f"{here}' {names} {_fish_offer(option, offers)} -d {_quoted(option.help)}")
        for number, argument in enumerate(place.arguments):
            if argument.takes is not Takes.TEXT:
                there = f"{here}'" if argument.several and number == 0 else f"{here} {number}'"
                lines.append(f"{there} {_fish_offer(argument, offers)}")
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
        if test -z "$at"; and not contains -- $word {" ".join(places[0].below)} {" ".join(_names(places[0].options))}
            set at /repl
        end
        switch "$at:$word"
            case {" ".join(_quoted(step) for step in _steps(places))}
                set at "$at/$word"
            case {" ".join(_quoted(one) for one in _valued(places))}
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
                {_USERS}
                return
        end
    end
end
function __dpsql_tables
    for word in (commandline -opc)
        switch $word
            case '*.yaml' '*.yml'
                {_TABLES}
                return
        end
    end
end
complete -c dpsql -f
{_lines(lines)}
"""


# --- what the scripts of bash and zsh share --------------------------------------------------------------------------


def _walk(places: Sequence[Place], indent: str) -> str:
    """The loop's body: the word goes on to a command, is an option, is an option's value, or is an argument."""
    top = places[0]
    known = "|".join((*top.below, *_names(top.options)))
    lines = (
        "if [[ -n $skip ]]; then skip=; continue; fi",
        f"case $at:$word in :{'|:'.join(known.split('|'))}) ;; :*) at=/repl ;; esac",
        "case $at:$word in",
        f"    {'|'.join(_steps(places))}) at=$at/$word ;;",
        f"    {'|'.join(_valued(places))}) skip=1 ;;",
        "    *:-*) ;;",
        "    *) ((taken += 1)) ;;",
        "esac",
    )
    return "\n".join(indent[4:] + line for line in lines)


def _steps(places: Sequence[Place]) -> Iterator[str]:
    yield from (f"{place.path}:{word}" for place in places for word in place.below)


def _valued(places: Sequence[Place]) -> Iterator[str]:
    for place in places:
        for option in place.options:
            if option.takes is not Takes.NOTHING:
                yield from (f"{place.path}:{name}" for name in option.names)


def _after(places: Sequence[Place], offers: dict[Takes, str]) -> str:
    """What an option takes, by the option before the cursor."""
    lines = []
    for place in places:
        for option in place.options:
            if option.takes is not Takes.NOTHING:
                names = "|".join(f"{place.path}:{name}" for name in option.names)
                lines.append(f"        {names}) {_offer(option, offers)}; return ;;")
    return _lines(lines)


def _arguments(places: Sequence[Place], offers: dict[Takes, str]) -> str:
    return _lines(
        f"        {place.path}:{'*' if argument.several else number}) {_offer(argument, offers)} ;;"
        for place in places
        for number, argument in enumerate(place.arguments)
        if argument.takes is not Takes.TEXT
    )


def _offer(taken: Taken, offers: dict[Takes, str]) -> str:
    if taken.takes is Takes.CHOICE:
        return _words(taken.choices)
    return offers[taken.takes]


def _words(words: Iterable[str]) -> str:
    """A call of the function that offers words, one a line."""
    return f"_dpsql_words {_quoted(chr(10).join(words))}"


def _fish_offer(taken: Taken, offers: dict[Takes, str]) -> str:
    match taken.takes:
        case Takes.NOTHING:
            return "-f"
        case Takes.CHOICE:
            return f"-x -a {_quoted(' '.join(taken.choices))}"
        case _:
            return offers[taken.takes]


def _pattern(place: Place) -> str:
    return place.path or '""'


def _names(options: Iterable[Taken]) -> Iterator[str]:
    yield from (name for option in options for name in option.names)


def _helped(options: Iterable[Taken]) -> Iterator[tuple[str, str]]:
    yield from ((name, option.help) for option in options for name in option.names)


def _described(words: Iterable[tuple[str, str]]) -> str:
    """As zsh reads them: a colon comes before what the word does."""
    return " ".join(_quoted(f"{word}:{what}") for word, what in words)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _lines(lines: Iterable[str]) -> str:
    return "\n".join(lines)
