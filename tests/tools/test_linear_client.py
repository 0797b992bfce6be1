"""gql against the same fake: a GraphQL client that is not ours is at home there, and reads the same schema."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.linear_rules import SCHEMA
from tests.fakes.linear_server import KEY, FakeLinear, uuid

gql: Any = pytest.importorskip("gql")


async def test_a_client_that_is_not_ours_is_at_home_at_the_fake() -> None:
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
