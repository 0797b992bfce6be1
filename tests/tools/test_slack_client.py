"""slack-sdk against the same fake: what our fake takes and gives is what Slack's own client sends and reads."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.slack_server import ADA, TOKEN, FakeSlack

slack_sdk: Any = pytest.importorskip("slack_sdk")


async def test_slacks_own_client_is_at_home_at_the_fake(tmp_path: Path) -> None:
    file = tmp_path / "report.txt"
    file.write_bytes(b"text")
    async with FakeSlack() as server:
        await asyncio.to_thread(_talk, slack_sdk.WebClient(token=TOKEN, base_url=f"{server.url}/"), file)
        assert server.bytes_sent == {"F000000001": "text"}


def _talk(client: Any, file: Path) -> None:
    assert client.auth_test()["team"] == "Acme"
    posted = client.chat_postMessage(channel="#general", text="hi", unfurl_links=False)
    channel, ts = posted["channel"], posted["ts"]
    client.chat_postMessage(channel=channel, text="there", thread_ts=ts, blocks=[{"type": "divider"}])
    assert client.chat_update(channel=channel, ts=ts, text="hello")["text"] == "hello"
    assert client.chat_postEphemeral(channel=channel, user=ADA, text="psst")["message_ts"]
    assert [one["text"] for one in client.conversations_history(channel=channel, limit=5)["messages"]] == ["hello"]
    assert len(client.conversations_replies(channel=channel, ts=ts)["messages"]) == 2
    pages = client.conversations_list(limit=2, exclude_archived=True)  # it follows the cursors by itself
    assert [one["name"] for page in pages for one in page["channels"]] == ["general", "random", "secret"]
    assert client.conversations_open(users=[ADA])["channel"]["id"]
    client.reactions_add(channel=channel, timestamp=ts, name="eyes")
    assert client.users_info(user=ADA)["user"]["name"] == "ada"
    assert client.users_lookupByEmail(email="ada@example.org")["user"]["id"] == ADA
    assert client.files_upload_v2(channel=channel, file=str(file), title="Q4")["files"][0]["title"] == "Q4"
    client.chat_delete(channel=channel, ts=ts)
    with pytest.raises(slack_sdk.errors.SlackApiError, match="message_not_found"):
        client.chat_delete(channel=channel, ts=ts)
