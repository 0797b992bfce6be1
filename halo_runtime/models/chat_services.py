"""The services that speak chat completions, an entry each: where they are, what their models take, how they differ."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Final

from halo_lang.records import record
from halo_runtime.models.http import FIRST_SECONDS, IDLE_SECONDS, TOTAL_SECONDS, Endpoint
from halo_runtime.models.openai_families import ANY, OPENAI_FAMILIES, OPENROUTER_FAMILIES, Family, family_of


@record
class ChatService:
    """A service. `endings` complete its address: the suffix that one is missing which matches the pattern.

    `families`: the first that matches counts. `account` names environment variables that travel as headers.
    `asks_for_usage`: its streams tell usage only when asked to. `strict`: it takes that word beside a schema.
    `insists`: it drops what a model does not take without a word, unless told not to when a schema counts.
    `thinks_aloud`: some of its models write their thoughts into their answers. `keeps_reasoning`: it wants the
    details of a turn's reasoning back. `responses`: it has that API, too. `key_path` tells of a key, where the list
    of models does not ask for one; `models_field` is where that list stands in its answer, if not at its top.
    """

    name: str
    prefix: str
    key_variable: str
    url_variable: str
    url: str
    endings: tuple[tuple[str, str], ...]
    families: tuple[Family, ...] = (ANY,)
    account: Mapping[str, str] = field(default_factory=dict[str, str])
    advice: Mapping[int | str, str] = field(default_factory=dict[int | str, str])
    first_seconds: float = FIRST_SECONDS
    idle_seconds: float = IDLE_SECONDS
    asks_for_usage: bool = False
    strict: bool = True
    insists: bool = False
    thinks_aloud: bool = False
    keeps_reasoning: bool = False
    responses: bool = False
    key_path: str | None = None
    models_field: str | None = "data"

    def family(self, model: str) -> Family:
        """What the model takes, by its name on the wire."""
        return family_of(model, self.families)

    def endpoint(self, env: Mapping[str, str], key: str) -> Endpoint:
        """Where `env` says that the service is, and the headers that it wants."""
        headers = {header: env.get(name, "").strip() for name, header in self.account.items()}
        headers["authorization"] = f"Bearer {key}" if key else ""
        return Endpoint(
            service=self.name,
            url=self._base_url(env),
            key_variable=self.key_variable,
            url_variable=self.url_variable,
            headers={name: value for name, value in headers.items() if value},
            secrets=(key,) if key else (),
            advice=self.advice,
            first_seconds=self.first_seconds,
            idle_seconds=self.idle_seconds,
        )

    def _base_url(self, env: Mapping[str, str]) -> str:
        """The address that an API's path is added to, whether people end it in `/`, leave `/v1` out or write all.

        An address with a path of its own is taken as it is, where the service's own addresses are.
        """
        url = (
            (env.get(self.url_variable, "").strip() or self.url)
            .rstrip("/")
            .removesuffix("/chat/completions")
            .removesuffix("/responses")
        )
        return url + next((ending for pattern, ending in self.endings if re.fullmatch(pattern, url)), "")


_ONLY_HOST: Final = r"https?://[^/]+"

OPENAI: Final = ChatService(
    name="OpenAI",
    prefix="openai",
    key_variable="OPENAI_API_KEY",
    url_variable="OPENAI_BASE_URL",
    url="https://api.openai.com/v1",
    endings=((_ONLY_HOST, "/v1"),),
    families=OPENAI_FAMILIES,
    account={"OPENAI_ORG_ID": "openai-organization", "OPENAI_PROJECT_ID": "openai-project"},
    first_seconds=TOTAL_SECONDS,  # its models, and servers that read a long prompt, say nothing meanwhile
    idle_seconds=300.0,  # nor between the items of a response
    asks_for_usage=True,
    responses=True,
)
"""OpenAI, and every server that speaks its chat completions (llama.cpp, vLLM, LM Studio) by OPENAI_BASE_URL."""

OPENROUTER: Final = ChatService(
    name="OpenRouter",
    prefix="openrouter",
    key_variable="OPENROUTER_API_KEY",
    url_variable="OPENROUTER_BASE_URL",
    url="https://openrouter.ai/api/v1",
    endings=((_ONLY_HOST, "/api/v1"), (r".*/api", "/v1")),
    families=OPENROUTER_FAMILIES,
    advice={403: "; it was flagged by moderation, or the account behind {key} may not use this model"},
    first_seconds=120.0,  # it sends comments while its models have nothing to say
    insists=True,
    keeps_reasoning=True,
    key_path="/key",
)
"""OpenRouter, a gateway to the models of all makers; `openrouter/MAKER/NAME`."""

TOGETHER: Final = ChatService(
    name="Together",
    prefix="together",
    key_variable="TOGETHER_API_KEY",
    url_variable="TOGETHER_BASE_URL",
    url="https://api.together.ai/v1",
    endings=((r".*(?<!/v1)", "/v1"),),
    advice={403: "; the request may be longer than the model can read"},
    strict=False,
    thinks_aloud=True,
    models_field=None,
)
"""Together, a host of open models; `together/OWNER/NAME`."""
