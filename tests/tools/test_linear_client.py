"""Linear's own client and gql against the same fake: what it takes and gives is what they send and read."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.fakes.linear_rules import SCHEMA
from tests.fakes.linear_server import KEY, FakeLinear, limited, uuid

gql: Any = pytest.importorskip("gql")


SDK = ROOT / ".node" / "node_modules" / "@linear" / "sdk" / "dist" / "index.mjs"


@pytest.mark.node
async def test_linears_own_client_is_at_home_at_the_fake() -> None:
    script = Path(__file__).with_name("linear_sdk.mjs")
    async with FakeLinear() as server:
        server.answer(limited(reset=1_764_500_090))
        process = await asyncio.create_subprocess_exec(
            "node", script, SDK, server.url, KEY, uuid(2, 1), uuid(4, 2), stdout=asyncio.subprocess.PIPE
        )
        output, _ = await process.communicate()
        [issue] = server.issues
        assert (issue["title"], issue["priority"], server.label_names(issue)) == ("New", 2, [])
        assert server.archived == ["ENG-1"]
    told = json.loads(output)
    limit, missing = told["limited"], told["missing"]
    assert (limit["kind"], limit["type"], limit["reset"]) == (
        "RatelimitedLinearError",
        "Ratelimited",
        1_764_500_090_000,
    )
    assert missing["kind"] == "InvalidInputLinearError"
    assert "Could not find referenced Issue." in missing["message"]
    assert told["done"] == [True] * 7
    assert told["listed"] == {"nodes": [{"identifier": "ENG-1"}], "pageInfo": {"hasNextPage": False}}


async def test_a_client_that_is_not_ours_has_the_same_schema() -> None:
    from gql.transport.exceptions import TransportQueryError
    from gql.transport.httpx import HTTPXAsyncTransport

    async with FakeLinear() as server:
        server.add_issue("It is broken", labels=("Bug",))
        transport = HTTPXAsyncTransport(url=server.url, headers={"authorization": KEY}, trust_env=False)
        async with gql.Client(transport=transport, schema=SCHEMA) as session:
            await _talk(session)
            with pytest.raises(TransportQueryError, match="Entity not found: Issue"):
                await session.execute(gql.gql('query { issue(id: "ENG-99") { id } }'))
        assert [issue["title"] for issue in server.issues] == ["It is broken", "New"]


async def _talk(session: Any) -> None:
    create = gql.gql(
        "mutation($input: IssueCreateInput!) { issueCreate(input: $input) { success issue { identifier } } }"
    )
    create.variable_values = {"input": {"teamId": uuid(2, 1), "title": "New", "labelIds": [uuid(4, 2)]}}
    assert (await session.execute(create))["issueCreate"] == {"success": True, "issue": {"identifier": "ENG-2"}}
    listed = gql.gql(
        'query { issues(first: 1, filter: {labels: {name: {eq: "Docs"}}}) '
        "{ nodes { title team { key } labels { nodes { name } } } pageInfo { hasNextPage } } }"
    )
    expected = {"title": "New", "team": {"key": "ENG"}, "labels": {"nodes": [{"name": "Docs"}]}}
    found = (await session.execute(listed))["issues"]
    assert found == {"nodes": [expected], "pageInfo": {"hasNextPage": False}}
