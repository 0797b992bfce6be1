"""One question to Linear: a GraphQL document goes out, `data` comes back, everything else is an error."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

from halo_runtime.errors import ToolError
from halo_runtime.json_types import Json, JsonObject, is_object
from halo_runtime.tools.linear.errors import errors_of, explain
from halo_runtime.tools.web.client import WebClient, WebRequest, refusal
from halo_runtime.tools.web.service import Service

SERVICE: Final = Service("Linear", "https://api.linear.app/graphql", "LINEAR_API_URL", max_bytes=16 << 20)
OAUTH: Final = "lin_oauth_"
"""How the tokens of applications begin; they alone go behind `Bearer`."""


class Api:
    """The API at an address, with a key. `label` names the tool in errors; `clock` is in seconds since 1970."""

    def __init__(self, label: str, base: str, client: WebClient, key: str, clock: Callable[[], float]) -> None:
        self._label = label
        self._base = base
        self._client = client
        self._clock = clock
        self._headers = {
            "authorization": f"Bearer {key}" if key.startswith(OAUTH) else key,
            "content-type": "application/json",
            "accept": "application/json",
        }

    async def ask(self, document: str, variables: JsonObject, *, repeatable: bool = True) -> JsonObject:
        """The `data` of an answer without errors. `repeatable`: it may be asked twice. Raises ToolError."""
        content = json.dumps({"query": document, "variables": variables}).encode()
        request = WebRequest(self._label, "POST", self._base, self._headers, content, repeatable)
        answer = await self._client.send(request)
        try:
            found = SERVICE.read(request, answer)
        except ToolError:
            if answer.status == 200:
                raise
            found = None  # a page of a server in between
        if errors := errors_of(found):
            raise explain(request, answer, errors, self._clock())
        if answer.status != 200:
            raise refusal(request, answer)
        data: Json = found.get("data") if is_object(found) else None
        if not is_object(data):
            raise SERVICE.unreadable(request)
        return data

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    def part(self, data: JsonObject, name: str) -> JsonObject:
        """An object that has to be there. Raises ToolError."""
        found: Json = data.get(name)
        if is_object(found):
            return found
        raise SERVICE.unreadable(WebRequest(self._label, "POST", self._base))
