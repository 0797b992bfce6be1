"""What providers of one named web service share: its address, its secret, the JSON that it answers with."""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final
from urllib.parse import urlsplit

from halo_lang.records import record
from halo_runtime.errors import ConfigError, ToolError
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.models.http import is_loopback
from halo_runtime.tools.web.client import MAX_BODY, WebAnswer, WebClient, WebRequest, problem_at
from halo_runtime.tools.web.urls import declared_url

_SECRET: Final = re.compile(r"[!-~]+")


@record
class Service:
    """A web service: its `name` in messages, its `public` address, and the `variable` that names another one.

    Of an answer `max_bytes` are read. `less` is what to do about a longer one.
    """

    name: str
    public: str
    variable: str
    max_bytes: int = MAX_BODY
    less: str = "ask for less"

    def address(self, settings: JsonObject) -> str:
        """Where a declaration's requests go. Raises ConfigError."""
        return declared_url(settings.get("baseUrl") or self.public, f"baseUrl (or {self.variable})")

    def secret(self, settings: JsonObject, name: str, base: str) -> str | None:
        """The token or key of a declaration, None where it has none.

        Raises ConfigError for one that cannot be right, or that anybody on the way to `base` could read.
        """
        secret: str = (settings.get(name) or "").strip()
        if not secret:
            return None
        if _SECRET.fullmatch(secret) is None:
            raise ConfigError(f"the {name} holds white space or characters that no {name} has; set it again")
        parts = urlsplit(base)
        if parts.scheme == "http" and not is_loopback(parts):
            raise ConfigError(f"baseUrl is plain http to another machine, where the {name} could be read; use https")
        return secret

    def client(self, base: str, timeout: float = 30.0) -> WebClient:
        """A client for `base`: it is the declaration's address or the machine's own, so a private one is meant."""
        return WebClient((urlsplit(base).hostname or "",), timeout=timeout, max_bytes=self.max_bytes)

    def read(self, request: WebRequest, answer: WebAnswer) -> Json:
        """The document of an answer. Raises ToolError where there is none, or too much of it."""
        if answer.cut:
            more = f"{self.name} answered more than {self.max_bytes >> 20} MiB; {self.less}"
            raise ToolError(f"{request.label}: {more}")
        try:
            return json.loads(answer.content)
        except (ValueError, RecursionError):
            raise self.unreadable(request) from None

    def unreadable(self, request: WebRequest) -> ToolError:
        """The error for an answer that cannot be this service's."""
        return problem_at(request, f"did not answer as {self.name} does; check baseUrl: or {self.variable}")


@contextmanager
def failures_of(tool: str, method: str) -> Generator[None]:
    """Begin what goes wrong with the call's name, `Tool.method: `, also where it begins with the tool's."""
    try:
        yield
    except ToolError as error:
        label = f"{tool}.{method}: "
        error.args = (label + error.message.removeprefix(label).removeprefix(f"{tool}: "),)
        raise
