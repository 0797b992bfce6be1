"""Bash scripts with values filled in: each value stays data, whatever quotes the program wrote around its place.

A value never becomes part of the script's text. It travels in an environment variable, and what stands in its place
is an expansion of that variable, written so that it gives exactly the value:

- outside quotes `"${V}"`, which is one word
- inside `"…"`, `$"…"` and unquoted here-documents `${V}`
- inside `'…'` and `$'…'` the quote is closed, `"${V}"` put, and the quote opened again
- in arithmetic `${V}`, and the value must be a whole number, because bash evaluates what a variable holds there

Bash does not read the result of an expansion as syntax, so a place that is read wrongly here can change how a value is
split, and can run nothing. What is left is code that reads data as code (`eval`, `sh -c`, `${…}`, a dollar sign right
before the value): a value there is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NoReturn

from halo_lang.records import record
from halo_runtime.errors import ToolError
from halo_runtime.tools.shell.commands import HOLE, Command, reads_code

VARIABLE: Final = "HALO_VALUE_{}"
"""The environment variable that carries a value, by its place from 1."""

_WHOLE_NUMBER: Final = re.compile(r"-?[0-9]{1,18}", re.ASCII)
_BLANK: Final = " \t"
_WORD_ENDS: Final = " \t\n;&|<>()"
_IDENTIFIER: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_IN_BRACES: Final = "a value cannot stand inside ${…}; give it a name first, as in `x={{…}}`"


@record
class Script:
    """A script that bash can run, and the variables that carry its values."""

    text: str
    variables: dict[str, str]


def fill_script(written: tuple[str, ...], values: tuple[str, ...]) -> Script:
    """The script `written[0] + values[0] + written[1] + …`, its values kept apart. Raises ToolError.

    The error says where a value stands in a place that cannot be made safe, or what is wrong with a value.
    """
    if any(HOLE in text for text in (*written, *values)):
        raise ToolError("the command or a value in it holds a NUL character, which no command can be given")
    if not values:
        return Script(written[0], {})
    scanner = _Scanner(HOLE.join(written))
    try:
        scanner.scan()
    except RecursionError:
        raise ToolError("the command is nested too deeply for values in it to be made safe") from None
    for number in sorted(scanner.numeric):
        if _WHOLE_NUMBER.fullmatch(values[number]) is None:
            raise ToolError(
                f"the value at {scanner.excerpt(scanner.places[number])} stands where bash calculates, so it must be"
                " a whole number"
            )
    return Script(
        "".join(scanner.out), {VARIABLE.format(number): value for number, value in enumerate(values, start=1)}
    )


class _Scanner:
    """One pass over a script. `out` is the script as it is run, `numeric` the values that must be whole numbers.

    Positions are those of the scanned text; `end` is where the part that is being read stops.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.end = len(text)
        self.position = 0
        self.out: list[str] = []
        self.places = [place for place, character in enumerate(text) if character == HOLE]
        self.filled = 0
        self.numeric: set[int] = set()
        self._documents: list[tuple[str, bool, bool]] = []
        self._subshells: set[int] = set()
        self._quotes: dict[str, Callable[[], str]] = {"'": self._single, '"': self._double, "`": self._backticks}

    def scan(self) -> None:
        self._commands(inside=False)
        self._read_documents(Command())

    def excerpt(self, place: int) -> str:
        """What stands around a place, for errors."""
        shown = self.text[max(0, place - 24) : place + 25].replace(HOLE, "{{…}}")
        return f"`{' '.join(shown.split())}`"

    # --- reading ------------------------------------------------------------------------------------------------

    def _peek(self, ahead: int = 0) -> str:
        """The next character, "" at the end."""
        place = self.position + ahead
        return self.text[place] if place < self.end else ""

    def _at(self, text: str) -> bool:
        return self.text.startswith(text, self.position, self.end)

    def _copy(self, count: int = 1) -> str:
        """Take characters as they are. A value among them is refused."""
        taken = self.text[self.position : min(self.position + count, self.end)]
        if HOLE in taken:
            self._refuse("a value cannot stand here")
        self.out.append(taken)
        self.position += count
        return taken

    def _fill(self, form: str) -> str:
        """Take a value and put `form` for it, with its variable's name in place of `{}`."""
        self.filled += 1
        self.out.append(form.format("${" + VARIABLE.format(self.filled) + "}"))
        self.position += 1
        return HOLE

    def _refuse(self, reason: str, place: int | None = None) -> NoReturn:
        raise ToolError(f"{reason}: {self.excerpt(self.position if place is None else place)}")

    def _unclosed(self, what: str) -> NoReturn:
        raise ToolError(f"the command has {what} that is not closed")

    # --- commands -----------------------------------------------------------------------------------------------

    def _commands(self, *, inside: bool) -> None:
        """Commands up to the end, or up to the `)` that closes them where they are `inside` of parentheses."""
        command = Command()
        depth = 0
        while character := self._peek():
            if character == ")" and not depth and not command.cases and inside:
                break
            if character in _BLANK or self._at("\\\n"):
                self._copy(1 if character in _BLANK else 2)
            elif character == "#":
                self._comment()
            elif self._at("((") and command.may_calculate() and self._calculation("(("):
                pass
            elif character in "()":
                depth = max(0, depth + (1 if character == "(" else -1))
                self._finish(command, character)
            elif character in "<>" or self._at("&>"):
                self._redirection(command)
            elif character in ";&|\n":
                self._finish(command, "||" if self._at("||") else character)
                if character == "\n":
                    self._read_documents(command)
                    command.fed = None
            else:
                self._add(command)
        if depth or (inside and not self._peek()):
            self._unclosed("a parenthesis")
        self._finish(command, "")

    def _add(self, command: Command) -> None:
        """Read a word of a command."""
        before, word = self.filled, self._word()
        if word.isdecimal() and self._peek() in ("<", ">"):
            return  # the number of a stream, as in 2>&1
        reason = command.add(word, before)
        if reason is not None:
            self._refuse(reason, self.places[before])
        self.numeric.update(command.calculated(self.filled))

    def _finish(self, command: Command, operator: str) -> None:
        """Take the operator that ends a command."""
        reason = command.finish(operator, self.filled)
        if reason is not None:
            self._refuse(reason, self.places[self.filled - 1])
        self._copy(len(operator))

    def _comment(self) -> None:
        while self._peek() not in ("", "\n"):
            if self._peek() == HOLE:
                self._fill("{}")
            else:
                self._copy()

    def _redirection(self, command: Command) -> None:
        if self._at("<<<"):
            self._copy(3)
            command.redirected = "<<<"
        elif self._at("<<"):
            self._begin_document()
        elif self._at("<(") or self._at(">("):
            before = self.filled
            self._nested(2)
            command.reads_value |= self.filled > before
        else:
            command.redirected = self._copy(2 if self._peek(1) in ("&", "|", ">") else 1)

    def _nested(self, opening: int) -> None:
        """`$(…)`, `<(…)`: quotes begin anew inside."""
        self._copy(opening)
        self._commands(inside=True)
        self._copy()

    # --- words --------------------------------------------------------------------------------------------------

    def _word(self, *, element: bool = False) -> str:
        """One word, or element of an array; given back without its quotes, values as HOLE."""
        word, subscript = "", False
        while (character := self._peek()) and character not in _WORD_ENDS:
            if character == "[" and (_IDENTIFIER.fullmatch(word) or (element and not word)):
                subscript = True
            elif character == "]":
                subscript = False
            before = self.filled
            word += self._piece(character)
            if subscript:
                self.numeric.update(range(before, self.filled))
        if character == "(" and word.endswith("="):
            self._elements()
        return word

    def _elements(self) -> None:
        """`(…)` after `name=`: the elements of an array."""
        self._copy()
        while (character := self._peek()) != ")":
            if not character:
                self._unclosed("a parenthesis")
            if character == "#":
                self._comment()
            elif self._at("<(") or self._at(">("):
                self._nested(2)
            elif character in _WORD_ENDS:
                self._copy()
            else:
                self._word(element=True)
        self._copy()

    def _piece(self, character: str) -> str:
        if character == HOLE:
            return self._fill('"{}"')
        if character == "\\":
            return self._escaped()
        if character in self._quotes:
            return self._quotes[character]()
        return self._dollar(quoted=False) if character == "$" else self._copy()

    def _escaped(self) -> str:
        """A backslash outside quotes: it takes the meaning from the next character, and a value has none anyway."""
        if self._peek(1) == HOLE:
            self.position += 1
            return self._fill('"{}"')
        return self._copy(2)[1:]

    def _single(self) -> str:
        word = self._copy()
        while (character := self._peek()) != "'":
            if not character:
                self._unclosed("a '")
            word += self._fill("'\"{}\"'") if character == HOLE else self._copy()
        self._copy()
        return word[1:]

    def _ansi(self) -> str:
        """`$'…'`, with escapes."""
        word = self._copy(2)
        while (character := self._peek()) != "'":
            if not character:
                self._unclosed("a '")
            if character == "\\" and self._peek(1) == HOLE:
                self._refuse("a value cannot follow a backslash inside $'…'")
            word += self._fill("'\"{}\"$'") if character == HOLE else self._copy(2 if character == "\\" else 1)
        self._copy()
        return word[2:]

    def _double(self) -> str:
        word = self._copy()
        while (character := self._peek()) != '"':
            if not character:
                self._unclosed('a "')
            word += self._inside_double(character)
        self._copy()
        return word[1:]

    def _inside_double(self, character: str) -> str:
        """One piece of what bash expands and does not split: inside `"…"` and here-documents."""
        if character == HOLE:
            return self._fill("{}")
        if character == "\\" and self._peek(1) == HOLE:
            # Before what means nothing to bash a backslash is itself; it must not take the dollar of the expansion.
            self.position += 1
            return "\\" + self._fill("\\\\{}")
        if character == "\\":
            return self._copy(2)
        if character == "`":
            return self._backticks()
        return self._dollar(quoted=True) if character == "$" else self._copy()

    def _backticks(self) -> str:
        """`` `…` ``: up to the next backtick, whatever quotes are inside, with backslashes read twice."""
        closing = self.position + 1
        while closing < self.end and self.text[closing] != "`":
            closing += 2 if self.text[closing] == "\\" else 1
        if closing >= self.end:
            self._unclosed("a `")
        content = self.text[self.position + 1 : closing]
        if "\\" in content:
            if HOLE in content:
                self._refuse("a value cannot be made safe inside `…` with backslashes; write $(…)")
            return self._copy(len(content) + 2)
        before = self.filled
        self._copy()
        outer, self.end = self.end, closing
        self._commands(inside=False)
        self.end = outer
        self._copy()
        return HOLE if self.filled > before else ""

    # --- expansions ---------------------------------------------------------------------------------------------

    def _dollar(self, *, quoted: bool) -> str:
        """An expansion, or a dollar sign."""
        following = self._peek(1)
        if following == HOLE:
            self._refuse(
                "a value cannot follow a dollar sign, as bash would take both together; write \\$ for the sign"
            )
        if following == "(":
            return self._substitution()
        if following == "{":
            self._braces(quoted=quoted)
        elif following == "[":
            self._copy(2)
            self._arithmetic("]")
            self._copy()
        elif following in ("'", '"') and not quoted:
            return self._ansi() if following == "'" else self._copy() and self._double()
        else:
            return self._copy(2 if following and following in "$?!#@*-" else 1)
        return "$"

    def _substitution(self) -> str:
        before = self.filled
        if not (self._at("$((") and self._calculation("$((")):
            self._nested(2)
        return HOLE if self.filled > before else "$"

    def _calculation(self, opening: str) -> bool:
        """Read `$((…))` or `((…))`; False, with nothing read, where it is one subshell inside another."""
        start, length, filled, numeric = self.position, len(self.out), self.filled, set(self.numeric)
        if start in self._subshells:
            return False
        self._copy(len(opening))
        if self._arithmetic(")") and self._at("))"):
            self._copy(2)
            return True
        self._subshells.add(start)
        self.position, self.filled, self.numeric = start, filled, numeric
        del self.out[length:]
        return False

    def _arithmetic(self, closer: str) -> bool:
        """A calculation up to its `closer`; whether there is one. Bash evaluates what values hold here."""
        before, depth = self.filled, 0
        while (character := self._peek()) and (depth or character != closer):
            depth += {"(": 1, ")": -1}.get(character, 0)
            if character == HOLE:
                self._fill("{}")
            elif character == "$":
                self._dollar(quoted=True)
            elif character == "`":
                self._backticks()
            else:
                self._copy(2 if character == "\\" and self._peek(1) != HOLE else 1)
        if not character and closer == "]":
            self._unclosed("a $[")
        self.numeric.update(range(before, self.filled))
        return bool(character)

    def _braces(self, *, quoted: bool) -> None:
        """`${…}`: its words have rules of their own, so values are refused."""
        self._copy(2)
        while (character := self._peek()) != "}":
            if not character:
                self._unclosed("a ${")
            if character == '"' or (character == "'" and not quoted):
                self._without_values(self._quotes[character], _IN_BRACES)
            else:
                self._without_values(lambda: self._inside_double(self._peek()), _IN_BRACES)
        self._copy()

    def _without_values(self, read: Callable[[], str], reason: str) -> None:
        """Read a piece in which no value may stand."""
        before = self.filled
        read()
        if self.filled > before:
            self._refuse(reason, self.places[before])

    # --- here-documents -----------------------------------------------------------------------------------------

    def _begin_document(self) -> None:
        self._copy(2)
        strip = self._peek() == "-"
        if strip:
            self._copy()
        while self._peek() and self._peek() in _BLANK:
            self._copy()
        start = self.position
        while (character := self._peek()) and character not in _WORD_ENDS:
            if character in "'\"":
                self._without_values(self._quotes[character], "a value cannot be the end mark of a here-document")
            else:
                self._copy(2 if character == "\\" else 1)
        mark = self.text[start : self.position]
        self._documents.append((re.sub(r"\\(.)|['\"]", r"\1", mark), any(c in mark for c in "'\"\\"), strip))

    def _read_documents(self, command: Command) -> None:
        """The bodies of the here-documents that the line before has announced."""
        documents, self._documents = self._documents, []
        for mark, literal, strip in documents:
            outer, self.end = self.end, self._end_of_document(mark, strip)
            while character := self._peek():
                if not literal and command.fed is not None:
                    self._without_values(lambda: self._inside_double(self._peek()), reads_code(command.fed))
                elif not literal:
                    self._inside_double(character)
                elif character == HOLE:
                    self._refuse(f"a value cannot be filled in after <<'{mark}'; write <<{mark} without quotes")
                else:
                    self._copy()
            self.end = outer
            while self._peek() not in ("", "\n"):
                self._copy()
            if self._peek():
                self._copy()

    def _end_of_document(self, mark: str, strip: bool) -> int:
        """Where the line of the end mark begins; without one the document goes on to the end."""
        place = self.position
        for line in self.text[self.position : self.end].split("\n"):
            if (line.lstrip("\t") if strip else line) == mark:
                return place
            place += len(line) + 1
        return self.end
