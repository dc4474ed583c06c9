"""A command word by word, from our own tokens: they keep the place of a statement within it."""

from __future__ import annotations

from dpsql.base.lexer import Token, TokenKind, split_tokens
from dpsql.compiler.parse.googlesql import Option
from dpsql.errors import InvalidSyntax, Span

MAX_INTEGER = 2**31 - 1


class CommandReader:
    """The tokens of a command, one after another, without space and comments."""

    def __init__(self, sql: str) -> None:
        self.sql = sql
        self._tokens = [token for token in split_tokens(sql) if token.kind not in (TokenKind.SPACE, TokenKind.COMMENT)]
        while self._tokens and self._tokens[-1].text == ";":
            self._tokens.pop()
        self._at = 0

    @property
    def next_token(self) -> Token | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def take_token(self) -> Token:
        token = self.next_token
        if token is None:
            raise InvalidSyntax("syntax error at end of input")
        self._at += 1
        return token

    def read_word(self) -> str:
        return self.take_token().text.lower()

    def accept(self, *texts: str) -> bool:
        """Take the words if they come next."""
        coming = [token.text.lower() for token in self._tokens[self._at : self._at + len(texts)]]
        if coming != list(texts):
            return False
        self._at += len(texts)
        return True

    def expect(self, *texts: str) -> None:
        if not self.accept(*texts):
            raise self.syntax_error()

    def read_name(self) -> str:
        token = self.take_token()
        if token.kind is TokenKind.QUOTED:
            return token.text[1:-1].replace('""', '"')
        if token.kind is not TokenKind.WORD:
            self._at -= 1
            raise self.syntax_error()
        return token.text.lower()

    def read_string(self) -> str:
        token = self.take_token()
        if token.kind is not TokenKind.STRING or not token.ended:
            self._at -= 1
            raise self.syntax_error()
        return string_value(token)

    def read_integer(self) -> int:
        sign = -1 if self.accept("-") else 1
        self.accept("+")
        token = self.take_token()
        if token.kind is not TokenKind.NUMBER or not token.text.isdigit() or len(token.text) > 10:
            self._at -= 1
            raise self.syntax_error()
        return sign * min(int(token.text), MAX_INTEGER)

    def is_integer_next(self) -> bool:
        token = self.next_token
        return token is not None and (token.kind is TokenKind.NUMBER or token.text in "+-")

    def read_rest(self) -> tuple[str, int]:
        """The statement that follows, and where it begins."""
        token = self.next_token
        if token is None:
            raise InvalidSyntax("syntax error at end of input")
        self._at = len(self._tokens)
        return self.sql[token.start : self._tokens[-1].end], token.start

    def take_remaining(self) -> list[Token]:
        """Take all tokens that follow."""
        remaining = self._tokens[self._at :]
        self._at = len(self._tokens)
        return remaining

    def read_parenthesized(self) -> tuple[str, int]:
        """What stands between the next parenthesis and the one that closes it."""
        self.expect("(")
        start, depth = self._at, 1
        while depth:
            token = self.take_token()
            depth += {"(": 1, ")": -1}.get(token.text, 0)
        inner = self._tokens[start : self._at - 1]
        if not inner:
            raise self.syntax_error()
        return self.sql[inner[0].start : inner[-1].end], inner[0].start

    def expect_end(self) -> None:
        if self.next_token is not None:
            raise self.syntax_error()

    def syntax_error(self) -> InvalidSyntax:
        token = self.next_token
        if token is None:
            return InvalidSyntax("syntax error at end of input")
        return InvalidSyntax(f'syntax error at or near "{token.text}"', span=Span(token.start, token.end))


def string_value(token: Token) -> str:
    """The text of '…', E'…' or $$…$$."""
    text = token.text
    if text.startswith("$"):
        mark = text[: text.index("$", 1) + 1]
        return text[len(mark) : -len(mark)]
    if text[0] in "eE":
        plain = text[2:-1].replace("''", "'")
        for escape, character in ((r"\t", "\t"), (r"\n", "\n"), (r"\r", "\r"), (r"\'", "'"), (r"\\", "\\")):
            plain = plain.replace(escape, character)
        return plain
    return text[text.index("'") + 1 : -1].replace("''", "'")


# WITH (epsilon = 1, method = 'mwem') behind a command.


def find_options(tokens: list[Token]) -> int | None:
    """Where WITH ( … ) begins, if the statement ends with it."""
    depth = 0
    for at, token in enumerate(tokens):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        behind = tokens[at + 1 : at + 2]
        if (
            depth == 0
            and token.kind is TokenKind.WORD
            and token.text.lower() == "with"
            and behind
            and behind[0].text == "("
        ):
            return at
    return None


def read_with_options(tokens: list[Token]) -> tuple[Option, ...]:
    """The options of `WITH (…)`."""
    if tokens[-1].text != ")":
        raise InvalidSyntax('a ")" is missing behind the options', span=_token_span(tokens[-1]))
    parts: list[list[Token]] = [[]]
    for token in tokens[2:-1]:
        if token.text == ",":
            parts.append([])
        else:
            parts[-1].append(token)
    options = tuple(_read_option(part, tokens[0]) for part in parts) if parts != [[]] else ()
    names = [option.name for option in options]
    for option in options:
        if names.count(option.name) > 1:
            raise InvalidSyntax(f'the option "{option.name}" is given twice', span=option.span)
    return options


def _read_option(part: list[Token], clause: Token) -> Option:
    if len(part) < 3 or part[1].text != "=" or part[0].kind is not TokenKind.WORD:
        raise InvalidSyntax("an option is a name, = and a value", hint="For example: WITH (epsilon = 1).",
                            span=_token_span(part[0] if part else clause))  # fmt: skip
    text = string_value(part[2]) if part[2].kind is TokenKind.STRING else "".join(token.text for token in part[2:])
    return Option(part[0].text.lower(), text, Span(part[0].start, part[-1].end))


def _token_span(token: Token) -> Span:
    return Span(token.start, token.end)
