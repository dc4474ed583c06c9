"""How a client writes text: PostgreSQL's names of encodings, and the codecs that stand for them.

Inside dpsql text is Unicode. A client may ask for another encoding (`SET client_encoding = 'LATIN1'`); then what it
sends is decoded by that, and what it gets is encoded. A character that the encoding lacks is an error, as it is in
PostgreSQL; in errors and notices it becomes a question mark.

>>> find_encoding("latin-1").name, find_encoding("'utf-8'").name, find_encoding("klingon")
('LATIN1', 'UTF8', None)
>>> find_encoding("WIN1252").encode("10 €")
b'10 \\x80'
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from dpsql.errors import DataError

_CODECS = {
    "UTF8": "utf-8", "SQL_ASCII": "utf-8", "LATIN1": "latin-1", "LATIN2": "iso8859-2", "LATIN3": "iso8859-3",
    "LATIN4": "iso8859-4", "LATIN5": "iso8859-9", "LATIN6": "iso8859-10", "LATIN7": "iso8859-13",
    "LATIN8": "iso8859-14", "LATIN9": "iso8859-15", "LATIN10": "iso8859-16", "ISO_8859_5": "iso8859-5",
    "ISO_8859_6": "iso8859-6", "ISO_8859_7": "iso8859-7", "ISO_8859_8": "iso8859-8", "WIN866": "cp866",
    "WIN874": "cp874", "WIN1250": "cp1250", "WIN1251": "cp1251", "WIN1252": "cp1252", "WIN1253": "cp1253",
    "WIN1254": "cp1254", "WIN1255": "cp1255", "WIN1256": "cp1256", "WIN1257": "cp1257", "WIN1258": "cp1258",
    "KOI8R": "koi8-r", "KOI8U": "koi8-u", "EUC_JP": "euc_jp", "EUC_KR": "euc_kr", "EUC_CN": "gb2312", "SJIS": "cp932",
    "EUC_JIS_2004": "euc_jis_2004", "SHIFT_JIS_2004": "shift_jis_2004", "BIG5": "cp950", "GBK": "gbk", "UHC": "cp949",
    "GB18030": "gb18030", "JOHAB": "johab",
}  # fmt: skip
"""PostgreSQL's names, without MULE_INTERNAL and EUC_TW, for which there are no codecs. SQL_ASCII converts nothing."""

_ALIASES = {
    "unicode": "UTF8", "iso88591": "LATIN1", "iso88592": "LATIN2", "iso88593": "LATIN3", "iso88594": "LATIN4",
    "iso88599": "LATIN5", "iso885910": "LATIN6", "iso885913": "LATIN7", "iso885914": "LATIN8", "iso885915": "LATIN9",
    "iso885916": "LATIN10", "win": "WIN1251", "alt": "WIN866", "abc": "WIN1258", "tcvn": "WIN1258", "vscii": "WIN1258",
    "tcvn5712": "WIN1258", "windows866": "WIN866", "windows874": "WIN874", "windows1250": "WIN1250",
    "windows1251": "WIN1251", "windows1252": "WIN1252", "windows1253": "WIN1253", "windows1254": "WIN1254",
    "windows1255": "WIN1255", "windows1256": "WIN1256", "windows1257": "WIN1257", "windows1258": "WIN1258",
    "koi8": "KOI8R", "shiftjis": "SJIS", "mskanji": "SJIS", "win932": "SJIS", "windows932": "SJIS", "win950": "BIG5",
    "windows950": "BIG5", "win936": "GBK", "windows936": "GBK", "win949": "UHC", "windows949": "UHC",
}  # fmt: skip


@dataclass(frozen=True)
class ClientEncoding:
    name: str
    codec: str

    @property
    def is_utf8(self) -> bool:
        return self.codec == "utf-8"

    def decode(self, data: bytes) -> str:
        try:
            return data.decode(self.codec)
        except UnicodeDecodeError as error:
            shown = " ".join(f"0x{byte:02x}" for byte in data[error.start : error.start + 3][: error.end - error.start])
            name = "UTF8" if self.is_utf8 else self.name
            raise DataError(f'invalid byte sequence for encoding "{name}": {shown}', sqlstate="22021") from None

    def encode(self, text: str) -> bytes:
        if self.is_utf8:
            return text.encode("utf-8", "replace")
        try:
            return text.encode(self.codec)
        except UnicodeEncodeError as error:
            shown = " ".join(f"0x{byte:02x}" for byte in text[error.start].encode("utf-8", "replace"))
            raise DataError(
                f'character with byte sequence {shown} in encoding "UTF8" has no equivalent in encoding "{self.name}"',
                hint="SET client_encoding = 'UTF8', and ask again.",
                sqlstate="22P05",
            ) from None

    def encode_leniently(self, text: str) -> bytes:
        """With question marks for characters that the encoding lacks."""
        return text.encode(self.codec, "replace")


def _fold_name(name: str) -> str:
    """As PostgreSQL compares names of encodings: letters and digits alone, in lower case."""
    return re.sub(r"[^0-9a-z]", "", name.lower())


ENCODINGS = {name: ClientEncoding(name, codec) for name, codec in _CODECS.items()}
UTF8 = ENCODINGS["UTF8"]
ENCODING_SPELLINGS = {_fold_name(name): name for name in ENCODINGS} | _ALIASES
"""The names of PostgreSQL and their aliases, letters and digits alone, with the name that is shown."""


def find_encoding(name: str) -> ClientEncoding | None:
    canonical = ENCODING_SPELLINGS.get(_fold_name(name))
    return None if canonical is None else ENCODINGS[canonical]
