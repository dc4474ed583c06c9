"""A command word by word, from our own tokens: they keep the place of a statement within it."""

from __future__ import annotations

from dpsql.errors import InvalidSyntax
from dpsql.lex import Kind, Token, tokens
from dpsql.span import Span

MOST = 2**31 - 1


class Words:
    """The tokens of a command, one after another, without space and comments."""

    def __init__(self, sql: str) -> None:
        self.sql = sql
        self._tokens = [token for token in tokens(sql) if token.kind not in (Kind.SPACE, Kind.COMMENT)]
        while self._tokens and self._tokens[-1].text == ";":
            self._tokens.pop()
        self._at = 0

    @property
    def next(self) -> Token | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def take(self) -> Token:
        token = self.next
        if token is None:
            raise InvalidSyntax("syntax error at end of input")
        self._at += 1
        return token

    def word(self) -> str:
        return self.take().text.lower()

    def accept(self, *texts: str) -> bool:
        """Take the words if they come next."""
        coming = [token.text.lower() for token in self._tokens[self._at : self._at + len(texts)]]
        if coming != list(texts):
            return False
        self._at += len(texts)
        return True

    def expect(self, *texts: str) -> None:
        if not self.accept(*texts):
            raise self.wrong()

    def name(self) -> str:
        token = self.take()
        if token.kind is Kind.QUOTED:
            return token.text[1:-1].replace('""', '"')
        if token.kind is not Kind.WORD:
            self._at -= 1
            raise self.wrong()
        return token.text.lower()

    def text(self) -> str:
        token = self.take()
        if token.kind is not Kind.STRING or not token.ended:
            self._at -= 1
            raise self.wrong()
        return string_of(token)

    def whole(self) -> int:
        sign = -1 if self.accept("-") else 1
        self.accept("+")
        token = self.take()
        if token.kind is not Kind.NUMBER or not token.text.isdigit() or len(token.text) > 10:
            self._at -= 1
            raise self.wrong()
        return sign * min(int(token.text), MOST)

    def is_whole(self) -> bool:
        token = self.next
        return token is not None and (token.kind is Kind.NUMBER or token.text in "+-")

    def rest(self) -> tuple[str, int]:
        """The statement that follows, and where it begins."""
        token = self.next
        if token is None:
            raise InvalidSyntax("syntax error at end of input")
        self._at = len(self._tokens)
        return self.sql[token.start : self._tokens[-1].end], token.start

    def remaining(self) -> list[Token]:
        """All tokens that follow, taken."""
        found = self._tokens[self._at :]
        self._at = len(self._tokens)
        return found

    def in_parentheses(self) -> tuple[str, int]:
        """What stands between the next parenthesis and the one that closes it."""
        self.expect("(")
        start, depth = self._at, 1
        while depth:
            token = self.take()
            depth += {"(": 1, ")": -1}.get(token.text, 0)
        inner = self._tokens[start : self._at - 1]
        if not inner:
            raise self.wrong()
        return self.sql[inner[0].start : inner[-1].end], inner[0].start

    def end(self) -> None:
        if self.next is not None:
            raise self.wrong()

    def wrong(self) -> InvalidSyntax:
        token = self.next
        if token is None:
            return InvalidSyntax("syntax error at end of input")
        return InvalidSyntax(f'syntax error at or near "{token.text}"', span=Span(token.start, token.end))


def string_of(token: Token) -> str:
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
