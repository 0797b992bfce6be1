"""One statement and its values, apart: templates are refused, placeholders become the database's own (reference 2.7).

Placeholders are `%s` by position and `%(name)s` by name, for every database. They are looked for outside quotes and
comments only. Where they are read wrongly a statement fails; a value can never become part of its text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, Literal, NamedTuple, TypeAlias

import regex

from halo_lang.records import record
from halo_runtime.errors import ToolError
from halo_runtime.json_types import Json, JsonObject, is_list, is_object
from halo_runtime.templates import WrittenText
from halo_runtime.values import type_name

MAX_CHARS: Final = 100_000
"""How long a statement may be; values are not counted."""

Dialect: TypeAlias = Literal["postgresql", "sqlite"]

_LITERALS: Final[Mapping[Dialect, str]] = {
    "postgresql": r"""
        \b[eE]'(?:[^'\\]|\\.|'')*+' | '(?:[^']|'')*+' | "(?:[^"]|"")*+"
        | (?<![\w$]) \$ (?P<tag> (?:[^\W\d]\w*)? ) \$ .*? \$(?P=tag)\$ """,
    "sqlite": r""" '(?:[^']|'')*+' | "(?:[^"]|"")*+" | `(?:[^`]|``)*+` | \[[^\]]*+\] """,
}
_COMMENTS: Final[Mapping[Dialect, str]] = {
    "postgresql": r"--[^\n]*+ | (?P<nested> /\* (?: [^*/]++ | \*(?!/) | /(?!\*) | (?&nested) )*+ \*/ )",
    "sqlite": r"--[^\n]*+ | /\* .*? (?: \*/ | \Z )",
}
_FOREIGN: Final[Mapping[Dialect, str]] = {
    "postgresql": r"(?<![\w$]) \$\d+",
    "sqlite": r"\?\d* | (?<![\w$]) [:@$][^\W\d]\w*",
}
"""Placeholders of other kinds. `?` and `:n` mean something else in PostgreSQL."""


def _scanner(dialect: Dialect) -> regex.Pattern[str]:
    return regex.compile(
        rf"""(?P<literal> {_LITERALS[dialect]} ) | (?P<comment> {_COMMENTS[dialect]} )
        | %% (?P<percent>)
        | % (?: \( (?P<name>[^()]*) \) )? s (?P<placeholder>) (?P<json> (?=\s*::\s*jsonb?\b) )? (?P<stuck>\w)?
        | (?P<foreign> {_FOREIGN[dialect]} )""",
        regex.VERBOSE | regex.DOTALL,
    )


_SCANNERS: Final[Mapping[Dialect, regex.Pattern[str]]] = {
    "postgresql": _scanner("postgresql"),
    "sqlite": _scanner("sqlite"),
}


class _Piece(NamedTuple):
    """A part of a statement, as written. A placeholder has a `name` where it goes by one."""

    kind: Literal["plain", "quoted", "foreign", "stuck", "value", "json"]
    written: str
    name: str | None = None


@lru_cache(maxsize=512)
def _pieces(text: str, dialect: Dialect) -> tuple[_Piece, ...]:
    """A statement cut at what may be or hold a placeholder. Kept, as a run sends the same few again and again."""
    pieces: list[_Piece] = []
    end = 0
    for found in _SCANNERS[dialect].finditer(text):
        pieces += [_Piece("plain", text[end : found.start()]), _piece(found)]
        end = found.end()
    return (*pieces, _Piece("plain", text[end:]))


def _piece(found: regex.Match[str]) -> _Piece:
    written = found[0]
    if found["comment"] is not None:
        return _Piece("plain", written)
    if found["literal"] is not None or found["percent"] is not None:
        return _Piece("quoted", written)
    if found["foreign"] is not None:
        return _Piece("foreign", written)
    if found["stuck"] is not None:
        return _Piece("stuck", written)
    return _Piece("json" if found["json"] is not None else "value", written, found["name"])


class Value(NamedTuple):
    """A value to bind. `as_json`: the statement takes it as JSON (`%s::jsonb`), not as an array."""

    value: Json
    as_json: bool = False


@record
class Statement:
    """A text with the database's own placeholders (`$1`, `?`), and a value for each."""

    text: str
    values: tuple[Value, ...] = ()


def read_statement(sql: Json, params: Json, dialect: Dialect) -> Statement:
    """The statement that a call asks for. Raises ToolError that says how to write it."""
    if isinstance(sql, WrittenText) and sql.filled and not sql.is_value:
        before = " ".join(sql.written[0].split())[-40:]
        raise ToolError(
            f"values do not go into the text of a statement: at `{before}{{{{…}}}}` write %s, and give the value in"
            ' params, as in query("… where id = %s", [id])'
        )
    text = str(sql)
    _check_text(text)
    return _Binding(text, params, dialect).statement()


def _check_text(text: str) -> None:
    if not text.strip():
        raise ToolError("the statement is empty")
    if "\0" in text:
        raise ToolError("the statement holds a NUL character")
    if len(text) > MAX_CHARS:
        raise ToolError(f"the statement has over {MAX_CHARS:,} characters; give long values in params")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ToolError("the statement must be valid Unicode text; it holds half a surrogate pair") from None


class _Binding:
    """Finds placeholders and gives each its value."""

    def __init__(self, text: str, params: Json, dialect: Dialect) -> None:
        self._text = text
        self._dialect: Dialect = dialect
        self._list: Sequence[Json] = ()
        self._names: JsonObject = {}
        self._given = params is not None
        if is_list(params):
            self._list = params
        elif is_object(params):
            self._names = params
        elif params is not None:
            raise ToolError(f"params takes a list, or an object by name, not {type_name(params)}")
        self._by_name = is_object(params)
        self._values: list[Value] = []
        self._numbers: dict[tuple[str | int, bool], int] = {}
        self._used = 0

    def statement(self) -> Statement:
        text = "".join(self._replacement(piece) for piece in _pieces(self._text, self._dialect))
        if not self._by_name and self._used != len(self._list):
            raise ToolError(
                f"params has {len(self._list)} values for {self._used} placeholders; placeholders are %s without quotes"
            )
        return Statement(text, tuple(self._values))

    def _replacement(self, piece: _Piece) -> str:
        written = piece.written
        match piece.kind:
            case "plain":
                return written
            case "quoted":
                # As in Python's drivers: `%%` is a percent sign, but only where there are values to bind.
                return written.replace("%%", "%") if self._given else written
            case "foreign":
                raise ToolError(
                    f"placeholders are %s, or %(name)s with params by name, not {written}; params has their values"
                )
            case "stuck":
                raise ToolError(f"`{written}` is no placeholder; write a space behind the % that divides")
            case _:
                return self._placeholder(piece.name, piece.kind == "json")

    def _placeholder(self, name: str | None, as_json: bool) -> str:
        key = self._key(name)
        source: Json = self._names if isinstance(key, str) else self._list
        number = self._numbers.get((key, as_json)) if self._dialect == "postgresql" else None
        if number is None:
            self._values.append(Value(source[key], as_json))
            number = self._numbers[key, as_json] = len(self._values)
        return f"${number}" if self._dialect == "postgresql" else "?"

    def _key(self, name: str | None) -> str | int:
        """Where the next placeholder's value is."""
        shown = "%s" if name is None else f"%({name})s"
        if not self._given:
            raise ToolError(f"the statement has the placeholder {shown} and no params")
        if (name is not None) != self._by_name:
            wanted = "an object by name" if name is not None else "a list"
            raise ToolError(f"params must be {wanted} for the placeholder {shown}")
        if name is None:
            self._used += 1
            if self._used > len(self._list):
                raise ToolError(f"params has {len(self._list)} values, and there are more placeholders")
            return self._used - 1
        if name not in self._names:
            raise ToolError(f"params has no value for {shown}; it has {', '.join(self._names) or 'none'}")
        return name
