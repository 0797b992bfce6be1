"""Every method of Figma against the strict fake: what it does, how it fails, that it is cancelled; what it refuses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halo_lang import catalog
from halo_runtime import ConfigError
from halo_runtime.errors import ToolError
from halo_runtime.tools import tool_factory
from halo_runtime.tools.base import ToolConfig
from halo_runtime.tools.figma.addresses import Place, node_id, place_of
from halo_runtime.tools.figma.methods import ROUTES
from halo_runtime.tools.figma.provider import Figma
from tests.fakes.figma_server import FILE, TOKEN, FakeFigma, refusal
from tests.fakes.wire import Answer, reply
from tests.tools.calling import call_as_a_run

SPEC = catalog.provider("Figma")
assert SPEC is not None
ADDRESS = f"https://www.figma.com/design/{FILE}/Shop?node-id=1-2&t=x"
IMAGE = "https://example.org/1:2.png"


@pytest.fixture
async def server() -> AsyncIterator[FakeFigma]:
    async with FakeFigma() as fake:
        yield fake


def opened(server: FakeFigma, **settings: Any) -> Figma:
    tool = tool_factory("Figma")(
        ToolConfig("Design", "Figma", {"token": TOKEN, "baseUrl": server.url, **settings}, Path())
    )
    assert isinstance(tool, Figma)
    return tool


ask = partial(call_as_a_run, SPEC)


@pytest.fixture
async def tool(server: FakeFigma) -> AsyncIterator[Figma]:
    made = opened(server)
    yield made
    await made.close()


def of(name: str, key: str) -> Callable[[Any], list[Any]]:
    return lambda result: [item[key] for item in result[name]]


# Method → arguments, what is looked at in the result, what it is.
DONE: dict[str, tuple[dict[str, Any], Callable[[Any], Any], Any]] = {
    "get_file": (
        {"key": FILE, "depth": 1.0},
        lambda file: (file["name"], file["document"]["children"]),
        ("Shop", [{"id": "0:1", "name": "Page", "type": "CANVAS"}]),
    ),
    "get_nodes": (
        {"key": FILE, "ids": ["1-2", "I1-2;3-4"]},
        lambda found: {id_: node["document"]["name"] for id_, node in found["nodes"].items()},
        {"1:2": "Button", "I1:2;3:4": "Part"},
    ),
    "get_images": (
        {"key": FILE, "ids": ["1:2", "1:3"], "format": "svg"},
        lambda found: found,
        {"images": {"1:2": "https://example.org/1:2.svg"}, "failed": ["1:3"]},
    ),
    "get_image_fills": ({"key": FILE}, lambda f: f, {"images": {"ref": "https://example.org/ref.png"}}),
    "get_versions": (
        {"key": FILE, "limit": 2},
        lambda found: (of("versions", "id")(found), found["cursor"], found["versions"][0]["user"]),
        (["1000", "999"], "999", {"id": "u1", "handle": "Ada"}),
    ),
    "get_meta": ({"key": FILE}, lambda meta: (meta["name"], meta["folder_name"]), ("Shop", "Web")),
    "list_comments": ({"key": FILE, "as_md": True}, of("comments", "message"), ["First"]),
    "post_comment": (
        {"key": FILE, "message": "Yes", "comment_id": "1"},
        lambda made: (made["id"], made["message"], made["parent_id"], made["user"]),
        ("2", "Yes", "1", {"id": "u1", "handle": "Ada"}),
    ),
    "delete_comment": ({"key": FILE, "comment_id": "1"}, lambda done: done, True),
    "components": (
        {"key": FILE},
        lambda found: found["components"][0]["containing_frame"],
        {"nodeId": "0:1", "name": "Page", "pageName": "Page"},
    ),
    "styles": ({"key": FILE}, of("styles", "style_type"), ["FILL"]),
    "variables": (
        {"key": FILE},
        lambda found: found,
        {"variables": {"VariableID:1:1": {"name": "red"}}, "variableCollections": {}},
    ),
    "dev_resources": ({"key": FILE, "ids": ["1-2"]}, of("dev_resources", "name"), ["Code"]),
    "me": ({}, lambda me: me, {"id": "u1", "handle": "Ada", "email": "ada@example.org"}),
}


def test_code_and_catalogue_have_the_same_methods() -> None:
    assert set(DONE) == set(SPEC.method_names) == set(ROUTES)
    for method in SPEC.methods:
        assert (method.effect == "read") == (ROUTES[method.name].verb == "GET"), method.name


@pytest.mark.parametrize("method", DONE)
async def test_every_method_does_what_it_says(tool: Figma, method: str) -> None:
    args, look, expected = DONE[method]
    assert look(await ask(tool, method, **args)) == expected


@pytest.mark.parametrize("shaped", [False, True])
@pytest.mark.parametrize("method", DONE)
async def test_every_method_fails_as_figma_does(server: FakeFigma, tool: Figma, method: str, shaped: bool) -> None:
    server.answer(refusal(403, "Invalid token", shaped=shaped))
    words = rf"^Design\.{method}: 127\S+ answered 403 to .*: Invalid token; check the token: in the declaration"
    with pytest.raises(ToolError, match=words) as caught:
        await ask(tool, method, **DONE[method][0])
    assert (caught.value.status, caught.value.detail, caught.value.retryable) == (403, "Invalid token", False)


@pytest.mark.parametrize("method", DONE)
async def test_every_method_can_be_cancelled_half_way(server: FakeFigma, tool: Figma, method: str) -> None:
    server.answer(Answer(hang=True))
    task = asyncio.create_task(ask(tool, method, **DONE[method][0]))
    async with asyncio.timeout(5):
        await server.hanging.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.left.wait()


@pytest.mark.parametrize("answer", [refusal(502, "Bad gateway"), Answer(cut=True)])
@pytest.mark.parametrize("method", DONE)
async def test_only_what_may_happen_twice_is_tried_again(
    server: FakeFigma, tool: Figma, method: str, answer: Answer
) -> None:
    server.answer(answer)
    with pytest.raises(ToolError) as caught:
        await ask(tool, method, **DONE[method][0])
    entry = SPEC.method(method)
    assert entry is not None
    assert caught.value.retryable is (entry.effect == "read" or entry.idempotent)


@pytest.mark.parametrize("method", ["get_file", "post_comment"])
async def test_a_limit_passes_and_says_when(server: FakeFigma, tool: Figma, method: str) -> None:
    headers = {"retry-after": "17", "x-figma-plan-tier": "pro", "x-figma-rate-limit-type": "low"}
    server.answer(refusal(429, "Rate limit exceeded", headers=headers))
    words = r"Rate limit exceeded; Figma asks for fewer requests \(plan pro, the owner's seat is view or collab\)$"
    with pytest.raises(ToolError, match=words) as caught:
        await ask(tool, method, **DONE[method][0])
    assert (caught.value.retryable, caught.value.retry_after) == (True, 17.0)


@pytest.mark.parametrize(
    ("method", "answer", "words"),
    [
        ("get_file", refusal(403, "Token expired"), "check the token"),
        ("get_file", refusal(403, "Forbidden"), "Forbidden; the token lacks a scope, or its owner may not"),
        ("get_file", refusal(401, "Unauthorized", shaped=True), "Unauthorized; check the token"),
        ("get_file", refusal(404, "Not found"), "Not found; there is no such thing, or the token may not see it"),
        ("get_file", refusal(500, "Internal"), "the file may be too large; ask for less with depth: or ids:"),
        ("get_file", refusal(400, "Request too large. Try a smaller one"), "too large; ask for less with depth:"),
        ("get_meta", refusal(500, "Internal"), "Internal$"),
        ("me", refusal(429, "Slow"), "Slow; Figma asks for fewer requests$"),
        ("me", Answer(403, b"<html>", content_type="text/html"), "answered 403 to GET /v1/me; the token lacks"),
        ("me", reply({"status": 404, "err": "gone"}), "answered 404 to GET /v1/me: gone"),
        ("me", reply({"error": True, "status": "x", "message": "odd"}), "answered 400 to GET /v1/me: odd"),
        ("get_images", reply({"err": "render timeout", "images": {}}), "answered 400 .*: render timeout"),
        ("me", Answer(body=b"<html>"), "did not answer as Figma does; check baseUrl: or FIGMA_API_URL"),
        ("me", reply([1]), "did not answer as Figma does"),
        ("get_file", Answer(body=b" " * (16 << 20) + b"{}"), "more than 16 MiB; ask for less with depth: or ids:"),
    ],
)
async def test_a_refusal_says_what_and_what_to_do(
    server: FakeFigma, tool: Figma, method: str, answer: Answer, words: str
) -> None:
    server.answer(answer)
    with pytest.raises(ToolError, match=rf"^Design\.{method}: .*{words}"):
        await ask(tool, method, **DONE[method][0])


async def test_variables_are_for_enterprises() -> None:
    async with FakeFigma(enterprise=False) as server:
        tool = opened(server)
        with pytest.raises(ToolError, match="Limited by Figma plan; variables are there on the Enterprise plan only"):
            await ask(tool, "variables", key=FILE)
        await tool.close()


async def test_a_reply_goes_to_the_first_comment_of_a_thread(tool: Figma) -> None:
    answer = await ask(tool, "post_comment", key=FILE, message="one", comment_id="1")
    with pytest.raises(ToolError, match="is not a root comment"):
        await ask(tool, "post_comment", key=FILE, message="two", comment_id=answer["id"])
    for comment_id, words in (("99", "Comment not found"), ("../x", "would lead out"), ("1/x?y", "Comment not found")):
        with pytest.raises(ToolError, match=rf"^Design\.delete_comment: .*{words}"):
            await ask(tool, "delete_comment", key=FILE, comment_id=comment_id)


async def test_a_comment_stands_where_it_is_said_to(server: FakeFigma, tool: Figma) -> None:
    where = {"node_id": "1-2", "node_offset": {"x": 1, "y": 2}}
    await ask(tool, "post_comment", key=ADDRESS, message="here", client_meta=where)
    assert server.comments[-1]["client_meta"] == {"node_id": "1:2", "node_offset": {"x": 1, "y": 2}}


# --- nodes and images -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["get_nodes", "get_images"])
async def test_the_node_of_an_address_is_meant_where_none_is_named(server: FakeFigma, tool: Figma, method: str) -> None:
    await ask(tool, method, key=ADDRESS)
    await ask(tool, method, key=ADDRESS, ids=["0:1"])
    assert [asked.query["ids"] for asked in server.asked] == ["1:2", "0:1"]
    with pytest.raises(ToolError, match=rf'^Design\.{method}: no node is named; give ids: \["1:2"\]'):
        await ask(tool, method, key=FILE)


async def test_a_file_is_read_whole_although_its_address_points_to_a_node(server: FakeFigma, tool: Figma) -> None:
    await ask(tool, "get_file", key=ADDRESS)
    await ask(tool, "get_file", key=FILE, ids=["1-2", "0:1"], geometry="paths", version="7")
    assert [asked.query for asked in server.asked] == [{}, {"ids": "1:2,0:1", "geometry": "paths", "version": "7"}]


async def test_nothing_rendered_is_a_failure(tool: Figma) -> None:
    with pytest.raises(ToolError, match=r"^Design\.get_images: Figma could not render 1:3, 9:9: it is not there"):
        await ask(tool, "get_images", key=FILE, ids=["1:3", "9:9"])


@pytest.mark.parametrize(("limit", "count", "requests"), [(30, 30, 1), (80, 80, 2), (1000, 120, 3)])
async def test_versions_are_read_over_pages(
    server: FakeFigma, tool: Figma, limit: int, count: int, requests: int
) -> None:
    server.versions = [server.versions[0] | {"id": str(number)} for number in range(120, 0, -1)]
    found = await ask(tool, "get_versions", key=FILE, limit=limit)
    assert of("versions", "id")(found) == [str(number) for number in range(120, 120 - count, -1)]
    assert (len(server.requests), found["cursor"]) == (requests, str(121 - count) if count < 120 else None)
    if found["cursor"]:
        older = await ask(tool, "get_versions", key=FILE, before=found["cursor"])
        assert older["versions"][0]["id"] == str(120 - count)


# --- addresses --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (FILE, Place(FILE)),
        (ADDRESS, Place(FILE, "1:2")),
        (f"figma.com/file/{FILE}", Place(FILE)),
        (f" https://www.figma.com/proto/{FILE}/A-b%20c/?node-id=I5-6%3B1-2 ", Place(FILE, "I5:6;1:2")),
        (f"https://figma.com/board/{FILE}/x?node-id=0%3A1#c", Place(FILE, "0:1")),
        (f"https://www.figma.com/design/{FILE}/branch/Br4nch/Shop", Place("Br4nch")),
    ],
)
def test_a_file_is_known_by_its_key_or_its_address(text: str, place: Place) -> None:
    assert place_of(text) == place


@pytest.mark.parametrize(
    "text",
    [
        "", "../x", "a/b", "https://evil.example/file/abc", f"https://www.figma.com.evil.example/file/{FILE}/x",
        f"https://evil@example.org/file/{FILE}", "https://www.figma.com/community/file/1", "https://[", "a b", "é",
        f"https://www.figma.com/file/{FILE}/../../v1/me",
    ],
)  # fmt: skip
def test_what_is_no_file_is_not_asked_for(text: str) -> None:
    with pytest.raises(ToolError, match="key is a file's key, or its address"):
        place_of(text)


@pytest.mark.parametrize("text", ["", "1", "a:b", "1:2,3:4", "1:2;", "1:2&x=y", "1" * 20 + ":1"])
def test_what_is_no_node_is_not_asked_for(text: str) -> None:
    with pytest.raises(ToolError, match='a node\'s id is written "1:2"'):
        node_id(text)


NUMBERS = st.integers(-(10**11), 10**11)
NODES = st.lists(st.builds("{}{}:{}".format, st.sampled_from(["", "I"]), NUMBERS, NUMBERS), min_size=1, max_size=4)


@given(NODES)
def test_an_id_and_its_form_in_an_address_are_the_same_node(parts: list[str]) -> None:
    id_ = ";".join(parts)
    assert node_id(id_) == id_ == node_id(id_.replace(":", "-"))


# --- settings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("token", "headers"),
    [(TOKEN, {"x-figma-token": TOKEN}), ("figu_0123", {"authorization": "Bearer figu_0123"})],
)
async def test_only_an_applications_token_goes_behind_bearer(token: str, headers: dict[str, str]) -> None:
    async with FakeFigma(headers=headers) as server:
        tool = opened(server, token=token)
        assert await tool.probe() == "Ada (ada@example.org)"
        server.answer(refusal(403, "Invalid token"))
        with pytest.raises(ToolError, match=r"^Design: 127\S+ answered 403 .*check the token"):
            await tool.probe()
        await tool.close()


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({}, "token: is missing; give an access token .*FIGMA_TOKEN"),
        ({"token": "two words"}, "the token holds white space"),
        ({"token": "t", "baseUrl": "http://figma.example"}, "plain http to another machine"),
        ({"token": "t", "baseUrl": "ftp://x"}, r"baseUrl \(or FIGMA_API_URL\) is no http or https address"),
    ],
)
def test_settings_that_cannot_work_are_told_first(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        tool_factory("Figma")(ToolConfig("Design", "Figma", settings, Path()))
