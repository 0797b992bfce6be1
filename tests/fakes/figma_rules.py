"""What Figma refuses of a request before anything is looked at: paths, queries, bodies, tokens.

The rules are Figma's own (`figma_openapi.json`): the parts of its OpenAPI description 0.43 (npm `@figma/rest-api-spec`,
MIT, © 2023 Figma) that are about what is asked here. Nodes are anything there, as their description is hundreds of
kilobytes long.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import jsonschema

from tests.fakes.wire import Received

SPEC: dict[str, Any] = json.loads((Path(__file__).parent / "figma_openapi.json").read_text())
NODE = re.compile(r"I?-?\d+:-?\d+(;-?\d+:-?\d+)*")


class Wrong(Exception):
    """A refusal; `shaped` is whether it comes as `{error: true, …}`, else as `{err}`."""

    def __init__(self, status: int, message: str, *, shaped: bool = False) -> None:
        super().__init__(message)
        self.status, self.message, self.shaped = status, message, shaped


@dataclass(frozen=True)
class Asked:
    """A request that is in order: the path as the description has it, and what it is asked with."""

    verb: str
    path: str
    parts: dict[str, str]
    query: dict[str, str]
    body: Any

    @property
    def operation(self) -> dict[str, Any]:
        return SPEC["paths"][self.path][self.verb]


def read(request: Received, headers: dict[str, str]) -> Asked:
    """What a request asks. Raises Wrong. `headers`: those that the token goes in."""
    address = urlsplit(request.path)
    path, parts = _found(address.path)
    verb = request.method.lower()
    if verb not in SPEC["paths"][path]:
        raise Wrong(405, "Method not allowed")
    given = {name: request.headers.get(name) for name in ("x-figma-token", "authorization")}
    if {name: value for name, value in given.items() if value is not None} != headers:
        raise Wrong(403, "Invalid token")
    pairs = parse_qsl(address.query, keep_blank_values=True)
    asked = Asked(verb, path, parts, dict(pairs), request.body)
    _check_query(asked, pairs)
    body = asked.operation.get("requestBody")
    if (body is None) != (request.body is None):
        raise Wrong(400, "Body expected" if body else "No body expected", shaped=True)
    if body is not None and (problem := flaw(body["content"]["application/json"]["schema"], request.body)):
        raise Wrong(400, problem, shaped=True)
    return asked


def _found(path: str) -> tuple[str, dict[str, str]]:
    for known in SPEC["paths"]:
        pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", re.escape(known))
        if match := re.fullmatch(pattern, path):
            return known, {name: unquote(value) for name, value in match.groupdict().items()}
    raise Wrong(404, "Not found")


def _check_query(asked: Asked, pairs: list[tuple[str, str]]) -> None:
    known = {one["name"]: one for one in asked.operation.get("parameters", ()) if one["in"] == "query"}
    if len(asked.query) < len(pairs) or not asked.query.keys() <= known.keys():
        raise Wrong(400, f"unknown or repeated parameters in {pairs}")
    for name, rule in known.items():
        if name not in asked.query:
            if rule.get("required"):
                raise Wrong(400, f"{name} is required")
            continue
        value = asked.query[name]
        typed: Any = json.loads(value) if rule["schema"]["type"] in ("number", "boolean") else value
        if problem := flaw(rule["schema"], typed):
            raise Wrong(400, f"{name}: {problem}")
        if name in ("ids", "node_ids") and not all(NODE.fullmatch(one) for one in value.split(",")):
            raise Wrong(400, f"Invalid node id in {value}")


def check_answer(asked: Asked, status: int, document: Any) -> None:
    """Raise AssertionError for an answer that Figma's description does not have."""
    name = asked.operation["responses"][str(status)]["$ref"].rsplit("/", 1)[1]
    schema = SPEC["components"]["responses"][name]["content"]["application/json"]["schema"]
    problem = flaw(schema, document)
    assert problem is None, f"{asked.verb} {asked.path} does not answer so: {problem}"


def is_shaped(asked: Asked, status: int) -> bool:
    """Whether a failure of this status comes as `{error: true, …}` here."""
    return asked.operation["responses"].get(str(status), {}).get("$ref", "").endswith("ErrorBoolean")


def flaw(schema: dict[str, Any], value: Any) -> str | None:
    """What is wrong with a value, by a schema of the description."""
    validator = jsonschema.Draft202012Validator({**schema, "components": SPEC["components"]})
    error = next(validator.iter_errors(value), None)
    return None if error is None else error.message
