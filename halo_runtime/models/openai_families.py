"""Families of models behind OpenAI's two APIs, one table: which API they are asked in and which settings they take.

From OpenAI's documentation of its models. Families are told by patterns, so that a new member is taken for one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, Literal, TypeAlias

from halo_lang.records import record

UseOfResponses: TypeAlias = Literal["never", "with tools", "always"]


@record
class Family:
    """What the models whose names match `pattern` take.

    `max_tokens`: the name of that limit in chat completions. `sampling`: whether temperature and top_p are taken while
    the model reasons as it does of itself. `responses`: when it is asked in the responses API, since it refuses tools
    in chat completions while it reasons, or everything. `rests`: whether its reasoning can be switched off, with which
    it takes tools in chat completions, too.
    """

    pattern: re.Pattern[str]
    max_tokens: str = "max_tokens"
    sampling: bool = True
    responses: UseOfResponses = "never"
    rests: bool = False


def _reasoning(pattern: str, responses: UseOfResponses = "never", *, rests: bool = False) -> Family:
    return Family(re.compile(pattern), "max_completion_tokens", sampling=False, responses=responses, rests=rests)


ANY: Final = Family(re.compile(""))

OPENAI_FAMILIES: Final = (
    _reasoning(r"(o\d|gpt-\d)[\w.-]*-(pro|deep-research|cyber|rosalind|law)(?![a-z])", "always"),
    _reasoning(r"gpt-\d[\w.-]*-codex|gpt-(daybreak|rosalind)|computer-use", "always"),
    _reasoning(r"o\d"),
    _reasoning(r"gpt-5(\.[1-5])?(?![.\d])"),
    _reasoning(r"gpt-5\.", "with tools", rests=True),
    _reasoning(r"gpt-6-(sol|luna)", "with tools", rests=True),
    _reasoning(r"gpt-([6-9]|[12]\d)", "with tools"),
    ANY,  # older models, and other servers' models
)

OPENROUTER_FAMILIES: Final = (
    Family(re.compile(r"openai/(o\d|gpt-([5-9]|[12]\d))"), sampling=False),
    Family(re.compile(r"anthropic/claude-[a-z]+-(4\.[7-9]|[5-9])"), sampling=False),
    ANY,
)


def family_of(model: str, families: Iterable[Family]) -> Family:
    """What a model takes, by its name on the wire; a fine-tuned one (`ft:…`) takes what its base does.

    The first family that fits counts; the last fits every model.
    """
    base = model.removeprefix("ft:")
    return next(family for family in families if family.pattern.match(base))
