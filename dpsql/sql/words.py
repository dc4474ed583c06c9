"""A command word by word, from our own tokens: they keep the place of a statement within it."""

from __future__ import annotations

from dpsql.errors import InvalidSyntax
from dpsql.lex import TokenKind, Token, split_tokens
from dpsql.span import Span

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
        """All tokens that follow, taken."""
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
