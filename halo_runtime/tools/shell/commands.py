"""What the words of a bash command mean for values in it: where commands begin, which commands read data as code."""

from __future__ import annotations

import re
from typing import Final

HOLE: Final = "\0"
"""Stands for a value in a script that is read; bash itself could not read it."""

_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*(?:\[[^]]*\])?\+?=", re.ASCII)


class Command:
    """The command that is being read: its words decide what may be filled into the next one.

    `cases` counts the `case` commands around it, whose patterns end in a `)` of their own. `redirected` is the
    operator to which the next word belongs, "" for none. `reads_value` tells that a value is in what the command reads,
    `fed` is an interpreter on this line that runs what it reads.
    """

    def __init__(self) -> None:
        self._words: list[str] = []
        self._first_value = 0
        self._input_from = 0
        self.cases = 0
        self.redirected = ""
        self.reads_value = False
        self.fed: str | None = None

    def may_calculate(self) -> bool:
        """Whether `((` begins a calculation here."""
        return self._words in ([], ["for"])

    def add(self, word: str, filled: int) -> str | None:
        """Take the next word, `filled` values before it; why it would be read as code, where a value in it would be."""
        if self.redirected:
            self.reads_value |= self.redirected == "<<<" and HOLE in word
            self.redirected = ""
            return None
        if not self._words and (word in _OPENERS or _ASSIGNMENT.match(word)):
            return None
        if HOLE in word and (reason := _evaluates(self._words, word)):
            return reason
        if not self._words:
            self.cases = max(0, self.cases + {"case": 1, "esac": -1}.get(word, 0))
            self._first_value = filled
        self._words.append(word)
        return None

    def calculated(self, filled: int) -> range:
        """The values that a `[[ … ]]` which has just ended evaluates."""
        ended = self._words[:1] == ["[["] and self._words[-1] == "]]"
        calculates = ended and not _CALCULATING_TESTS.isdisjoint(self._words)
        return range(self._first_value, filled) if calculates else range(0)

    def finish(self, operator: str, filled: int) -> str | None:
        """The command ends at an operator; why its input would be read as code, where there is a value in that.

        Operators inside of `[[ … ]]` end nothing.
        """
        if self._words[:1] == ["[["] and "]]" not in self._words:
            return None
        before = self._first_value if self._words else filled
        interpreter = _runs_its_input(self._words)
        if interpreter is not None and (self.reads_value or before > self._input_from):
            return reads_code(interpreter)
        self.fed = interpreter or self.fed
        self._words = []
        self.reads_value = False
        self.redirected = ""
        if operator not in ("|", "(", ")"):
            self._input_from = filled
        return None


_OPENERS: Final = frozenset(("if", "then", "else", "elif", "do", "while", "until", "!", "{", "time"))
"""Words after which a command begins."""

_CALCULATING_TESTS: Final = frozenset(("-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v", "-R"))
"""What makes `[[ … ]]` evaluate what its words hold."""

_PREFIXES: Final = frozenset(("command", "builtin", "exec", "sudo", "nohup", "env", "nice", "timeout"))
_PREFIX_ARGUMENT: Final = re.compile(r"-|[0-9]|[A-Za-z_]\w*=", re.ASCII)
_CODE_COMMANDS: Final = frozenset(("eval", "let", "trap", "unset", "read", "mapfile", "readarray", "getopts"))
_DECLARATIONS: Final = frozenset(("declare", "typeset", "local", "export", "readonly"))
_EVALUATED_DECLARATION: Final = re.compile(r"-\w*[aAin]", re.ASCII)

_NAMING_OPTIONS: Final = {"printf": ("-v",), "wait": ("-p",), "test": ("-v", "-R"), "[": ("-v", "-R")}
"""Options after which a word is the name of a variable, and as such evaluated. A value may be the option, too."""

_SHELL: Final = re.compile(r"-\w*c\w*", re.ASCII)
_SCRIPT: Final = re.compile(r"-\w*[ceErp]|--eval|--print", re.ASCII)
_CODE_OPTIONS: Final = {
    **dict.fromkeys(("sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "su"), _SHELL),
    **dict.fromkeys(("python", "python3", "perl", "ruby", "node", "deno", "bun", "lua", "php"), _SCRIPT),
}
"""Interpreters, and the options whose argument they run."""

_CODE_ANYWHERE: Final = frozenset(("su",))
"""Interpreters that look for the option among all arguments."""

_SOURCES: Final = frozenset(("source", "."))
_INPUTS: Final = frozenset(("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"))

_VALUED: Final = frozenset(("-o", "+o", "-O", "+O", "-W", "-X", "-I"))
"""Options of interpreters that take the next word."""


def _evaluates(before: list[str], word: str) -> str | None:
    """Why a word with a value in it would be read as code by the command of the words `before` it."""
    words = [name.rpartition("/")[2] for name in before]
    own = [name for name in words if name not in _PREFIXES]
    command, previous = (own[0], own[-1]) if own else ("", "")
    if command.startswith(HOLE):
        return "where a value names the command no other value can be safe; write the command into the program"
    if command in _CODE_COMMANDS:
        return f"`{command}` would read the value as code"
    name = _ASSIGNMENT.match(word)
    evaluated = any(_EVALUATED_DECLARATION.match(option) for option in own)
    if command in _DECLARATIONS and (name is None or HOLE in name[0] or evaluated):
        return f"`{command}` would evaluate the value; write it as `name={{{{…}}}}` without options"
    may_be_option = previous.startswith(HOLE) and (command != "printf" or len(own) == 2)
    if command in _NAMING_OPTIONS and (previous in _NAMING_OPTIONS[command] or may_be_option):
        return f"`{command}` would evaluate the value where {_NAMING_OPTIONS[command][0]} stands before it"
    for place, other in enumerate(words):
        if other in _CODE_OPTIONS and _is_code(other, words[place + 1 :], word):
            return reads_code(other)
    return None


def reads_code(interpreter: str) -> str:
    """Why a value is refused that an interpreter would run."""
    return f"`{interpreter}` would read the value as code; give it as an argument of its own after the code"


def _runs_its_input(words: list[str]) -> str | None:
    """The interpreter that is this command, where it has no script and so runs what it reads."""
    for place, word in enumerate(words):
        name = word.rpartition("/")[2]
        if name in _SOURCES:
            return name
        if name in _CODE_OPTIONS:
            return name if _has_no_script(words[place + 1 :]) else None
        if name not in _PREFIXES and not _PREFIX_ARGUMENT.match(word):
            return None
    return None


def _is_code(interpreter: str, arguments: list[str], word: str) -> bool:
    """Whether `word` is what the interpreter runs; after a script or code come that one's own arguments."""
    if interpreter not in _CODE_ANYWHERE and not _has_no_script(arguments):
        return False
    option = _CODE_OPTIONS[interpreter]
    attached = option.match(word) is not None or word.startswith("--eval=")
    return attached or any(option.fullmatch(argument) for argument in arguments)


def _has_no_script(arguments: list[str]) -> bool:
    """Whether an interpreter's arguments are options only."""
    before = ("", *arguments)
    return all(
        argument.startswith(("-", "+")) or argument in _INPUTS or previous in _VALUED
        for previous, argument in zip(before, arguments, strict=False)
    )
