"""`Language("en")`: in which language a reply is (spec 6), by lingua, the extra `language`.

What is no prose is left out: code, addresses, the keys of JSON. Texts with fewer letters than MIN_LETTERS pass: too
little to tell by.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Final

from halo_runtime.errors import ConfigError
from halo_runtime.extras import require
from halo_runtime.json_types import Json, JsonObject, is_list, is_object
from halo_runtime.policies.base import PolicyRule
from halo_runtime.policies.output import OutputRule
from halo_runtime.replies import parse_reply

if TYPE_CHECKING:
    from lingua import IsoCode639_1, LanguageDetector

MIN_LETTERS: Final = 20
MAX_CHARACTERS: Final = 20_000
"""How much of a reply is looked at, from its beginning."""

SHORT: Final = 200
"""Characters of a text that may be taken for one in another language at first sight."""

_NO_PROSE: Final = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|\b\w+://\S+|\S+@\S+", re.DOTALL)
_WIDE: Final = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")
"""Characters that say as much as two letters or more."""


def language(args: JsonObject) -> PolicyRule:
    """`Language("en")`. Raises ConfigError for no known code, and without the extra."""
    require("language", "the policy rule Language")
    import lingua  # nobody else needs it

    code = args["code"]
    wanted = getattr(lingua.IsoCode639_1, str(code).upper(), None)
    if wanted is None:
        known = ", ".join(sorted(found.iso_code_639_1.name.lower() for found in lingua.Language.all()))
        raise ConfigError(f'Language: "{code}" is no code of a language that is known; known are {known}')

    def complaint(text: str) -> str | None:
        prose = _prose(text)
        if _letters(prose) < MIN_LETTERS or _is_in(wanted, prose):
            return None
        return f'the reply is not in the language "{code}"'

    return OutputRule(complaint)


def _is_in(wanted: IsoCode639_1, text: str) -> bool:
    """Whether a text is in a language, for all that can be told.

    One detector knows all languages, by little of each: it is quick, and takes short texts for a sister language now
    and then. So another that knows much of two, and takes a second to load, has the last word about these.
    """
    found = _all_languages().detect_language_of(text)
    if found is None or found.iso_code_639_1 == wanted:
        return True
    if len(text) > SHORT:
        return False
    nearer = _two_languages(wanted, found.iso_code_639_1).detect_language_of(text)
    return nearer is None or nearer.iso_code_639_1 == wanted


@cache
def _all_languages() -> LanguageDetector:
    from lingua import LanguageDetectorBuilder

    return LanguageDetectorBuilder.from_all_languages().with_low_accuracy_mode().build()


@cache
def _two_languages(one: IsoCode639_1, other: IsoCode639_1) -> LanguageDetector:
    from lingua import LanguageDetectorBuilder

    return LanguageDetectorBuilder.from_iso_codes_639_1(one, other).build()


def _prose(text: str) -> str:
    """What people read of a reply, as far as it is looked at."""
    value = parse_reply(text, json_asked=False).value
    if not isinstance(value, str):
        text = "\n".join(_texts(value))
    readable = text[:MAX_CHARACTERS].encode("utf-8", "ignore").decode()  # a half of a pair is no text
    return _NO_PROSE.sub(" ", readable)


def _texts(value: Json) -> Iterator[str]:
    """The strings of a JSON value; its depth is bounded by the parser."""
    if isinstance(value, str):
        yield value
    elif is_list(value) or is_object(value):
        for item in value.values() if is_object(value) else value:
            yield from _texts(item)


def _letters(text: str) -> int:
    return sum(map(str.isalpha, text)) + len(_WIDE.findall(text))
