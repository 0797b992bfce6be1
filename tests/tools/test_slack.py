"""Every method of Slack against the strict fake: what it does, how it fails, that it can be cancelled, what is safe."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import halo_lang
from halo_lang import catalog
from halo_runtime import Cassette, ConfigError, RunResult
from halo_runtime.errors import ToolError
from halo_runtime.tools import tool_factory
from halo_runtime.tools.base import ToolConfig
from halo_runtime.tools.slack.provider import Slack, escaped
from tests.durability.support import Project
from tests.fakes.slack_server import ADA, BOT, TOKEN, FakeSlack, limited, refusal
from tests.fakes.wire import Answer, reply
from tests.runtime.support import runtime
from tests.tools.calling import call_as_a_run

SPEC = catalog.provider("Slack")
assert SPEC is not None
FIRST, SECOND = "1764000001.000100", "1764000002.000100"


@pytest.fixture
async def server() -> AsyncIterator[FakeSlack]:
    """Two messages: one of Ada's, one of the bot's in its thread, and one more of the bot's."""
    async with FakeSlack() as fake:
        fake.say("general", "a &lt;b&gt; &amp; <@U1>")
        fake.say("general", "mine", user=BOT)
        fake.say("general", "reply", thread=FIRST)
        yield fake


def opened(server: FakeSlack, folder: Path = Path(), **settings: Any) -> Slack:
    tool = tool_factory("Slack")(
        ToolConfig("Team", "Slack", {"token": TOKEN, "baseUrl": server.url, **settings}, folder)
    )
    assert isinstance(tool, Slack)
    return tool


ask = partial(call_as_a_run, SPEC)


@pytest.fixture
async def tool(server: FakeSlack, tmp_path: Path) -> AsyncIterator[Slack]:
    (tmp_path / "report.pdf").write_bytes(b"%PDF\xff\0")
    made = opened(server, tmp_path)
    yield made
    await made.close()


# Method → arguments, what is looked at in the result, what it is.
DONE: dict[str, tuple[dict[str, Any], Callable[[Any], Any], Any]] = {
    "post": ({"channel": "#general", "text": "hi"}, lambda r: r, {"channel": "C000000001", "ts": "1764000004.000100"}),
    "update": (
        {"channel": "general", "ts": SECOND, "text": "new"},
        lambda r: r,
        {"channel": "C000000001", "ts": SECOND},
    ),
    "delete": ({"channel": "general", "ts": SECOND}, lambda r: r, True),
    "ephemeral": ({"channel": "general", "user": ADA, "text": "psst"}, lambda r: r, {"ts": "1764000004.000100"}),
    "history": (
        {"channel": "general"},
        lambda r: ([(one["text"], one["user"]) for one in r["messages"]], r["cursor"]),
        ([("mine", BOT), ("a <b> & <@U1>", ADA)], None),
    ),
    "replies": (
        {"channel": "general", "ts": FIRST},
        lambda r: [one["text"] for one in r["messages"]],
        ["a <b> & <@U1>", "reply"],
    ),
    "channels": (
        {"limit": 2},
        lambda r: ([one["name"] for one in r["channels"]], r["channels"][0]["topic"], r["cursor"]),
        (["general", "random"], {"value": "about general"}, "at=2="),
    ),
    "openDm": ({"user": ADA}, lambda r: r, {"channel": "C000000004"}),
    "react": ({"channel": "general", "ts": FIRST, "name": ":eyes:"}, lambda r: r, True),
    "user": (
        {"email": "ada@example.org"},
        lambda r: r,
        {"id": ADA, "name": "ada", "realName": "Ada Lovelace", "email": "ada@example.org", "isBot": False,
         "deleted": False},
    ),
    "upload": ({"channel": "general", "path": "report.pdf", "title": "Q4"}, lambda r: r, {"id": "F000000001"}),
}  # fmt: skip


def test_every_method_of_the_catalogue_is_tried() -> None:
    assert set(DONE) == set(SPEC.method_names)


@pytest.mark.parametrize("method", DONE)
async def test_every_method_does_what_it_says(tool: Slack, method: str) -> None:
    args, look, expected = DONE[method]
    assert look(await ask(tool, method, **args)) == expected


@pytest.mark.parametrize("method", DONE)
async def test_every_method_fails_as_slack_does(server: FakeSlack, tool: Slack, method: str) -> None:
    server.answer(refusal("token_revoked"))
    with pytest.raises(ToolError, match=rf"^Team\.{method}: .* refused: token_revoked; check the token") as caught:
        await ask(tool, method, **DONE[method][0])
    assert (caught.value.detail, caught.value.retryable) == ("token_revoked", False)


@pytest.mark.parametrize("method", DONE)
async def test_every_method_can_be_cancelled_half_way(server: FakeSlack, tool: Slack, method: str) -> None:
    server.answer(Answer(hang=True))
    task = asyncio.create_task(ask(tool, method, **DONE[method][0]))
    async with asyncio.timeout(5):
        await server.hanging.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.left.wait()


BY_ID = {
    method: {**args, "channel": "C000000001"} if "channel" in args else args for method, (args, *_) in DONE.items()
}


@pytest.mark.parametrize("answer", [reply({}, 502), refusal("internal_error"), refusal("fatal_error")])
@pytest.mark.parametrize("method", set(DONE) - {"upload"})
async def test_only_what_may_happen_twice_is_tried_again(
    server: FakeSlack, tool: Slack, method: str, answer: Answer
) -> None:
    server.answer(answer)
    with pytest.raises(ToolError) as caught:
        await ask(tool, method, **BY_ID[method])
    entry = SPEC.method(method)
    assert entry is not None
    assert caught.value.retryable is (entry.effect == "read" or entry.idempotent)


@pytest.mark.parametrize(
    ("answer", "wait"),
    [(limited(17), 17.0), (limited(None), None), (refusal("ratelimited"), 30.0), (refusal("rate_limited"), 30.0)],
)
@pytest.mark.parametrize("method", ["post", "history"])
async def test_a_limit_passes_and_says_when(
    server: FakeSlack, tool: Slack, method: str, answer: Answer, wait: float | None
) -> None:
    server.answer(answer)
    with pytest.raises(ToolError) as caught:
        await ask(tool, method, **BY_ID[method])
    assert (caught.value.retryable, caught.value.retry_after) == (True, wait)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (refusal("missing_scope", needed="chat:write", provided="users:read"), "needs chat:write, it has users:read"),
        (refusal("not_in_channel"), "not_in_channel; invite the bot"),
        (refusal("channel_not_found"), "there is no such channel, or the bot may not see it"),
        (refusal("invalid_blocks", errors=["missing field"]), "invalid_blocks; missing field"),
        (
            refusal("invalid_arguments", response_metadata={"messages": ["[ERROR] bad"]}),
            "invalid_arguments; .ERROR. bad",
        ),
        (refusal("new_error_of_2030"), "refused: new_error_of_2030$"),
        (refusal("x" * 1000), "refused: x{300}…$"),
        (Answer(body=b"<html>"), "did not answer as Slack does; check baseUrl: or SLACK_API_URL"),
        (reply([1]), "did not answer as Slack does"),
        (reply({"ok": "yes"}), "refused: unknown_error"),
        (reply({"message": "no"}, 404), "answered 404 to POST /api/chat.postMessage: no"),
    ],
)
async def test_a_refusal_says_what_and_what_to_do(server: FakeSlack, tool: Slack, answer: Answer, words: str) -> None:
    server.answer(answer)
    with pytest.raises(ToolError, match=words):
        await ask(tool, "post", channel="C000000001", text="t")


async def test_how_things_are_already_is_no_failure(tool: Slack) -> None:
    for _ in range(2):
        assert await ask(tool, "react", channel="general", ts=FIRST, name="eyes") is True
    assert await ask(tool, "delete", channel="general", ts=SECOND) is True
    assert await ask(tool, "delete", channel="general", ts=SECOND) is False


async def test_what_others_wrote_is_not_changed(tool: Slack) -> None:
    for method in ("update", "delete"):
        with pytest.raises(ToolError, match="a bot changes only its own messages"):
            await ask(tool, method, channel="general", ts=FIRST, **({"text": "x"} if method == "update" else {}))


# --- texts ------------------------------------------------------------------------------------------------------------


async def test_a_text_mentions_nobody_unless_it_is_said_to_be_markup(server: FakeSlack, tool: Slack) -> None:
    text = "<!channel> <@U00000ADA1> <https://evil.example|click> & so"
    await ask(tool, "post", channel="general", text=text)
    await ask(tool, "post", channel="general", text=text, markup=True)
    plain, markup = [one["text"] for one in server.messages["C000000001"][-2:]]
    assert plain == "&lt;!channel&gt; &lt;@U00000ADA1&gt; &lt;https://evil.example|click&gt; &amp; so"
    assert markup == text
    assert (await ask(tool, "history", channel="general"))["messages"][1]["text"] == text


async def test_no_address_is_fetched_for_a_preview(server: FakeSlack, tool: Slack) -> None:
    await ask(tool, "post", channel="general", text="https://evil.example/?secret")
    assert (server.asked[-1].args["unfurl_links"], server.asked[-1].args["unfurl_media"]) == (False, False)


@given(st.text(max_size=50))
def test_escaping_leaves_no_markup_and_can_be_undone(text: str) -> None:
    sent = escaped(text)
    assert "<" not in sent
    assert ">" not in sent
    assert sent.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&") == text


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({"text": "x" * 40_001}, "the text has 40,001 characters, Slack takes 40,000; upload it"),
        ({"text": "<" * 10_001}, "the text has 40,004 characters"),
        ({"text": " \n"}, "the text is empty"),
        ({"text": "t", "blocks": [{"type": "divider"}] * 51}, "there are 51 blocks; Slack takes 50"),
        ({"text": "t", "thread": "1764000000"}, "thread is a message's timestamp"),
        ({"text": "t", "thread": "1.7640000e9"}, "thread is a message's timestamp"),
        ({"text": "t", "channel": None}, "no channel is named"),
    ],
)
async def test_what_slack_would_not_take_is_not_sent(
    server: FakeSlack, tool: Slack, args: dict[str, Any], words: str
) -> None:
    with pytest.raises(ToolError, match=rf"^Team\.post: {words}"):
        await ask(tool, "post", **{"channel": "general", **args})
    assert server.requests == []


async def test_blocks_and_threads(server: FakeSlack, tool: Slack) -> None:
    blocks = [{"type": "section", "text": {"type": "mrkdwn", "text": "*hi*"}}]
    await ask(tool, "post", channel="general", blocks=blocks, thread=FIRST)
    message = server.messages["C000000001"][-1]
    assert (message["blocks"], message["thread_ts"]) == (blocks, FIRST)
    assert len((await ask(tool, "replies", channel="general", ts=FIRST))["messages"]) == 3


async def test_halves_of_characters_are_replaced(server: FakeSlack, tool: Slack) -> None:
    await ask(tool, "post", channel="general", text="a\ud800 ü 😀")
    assert server.messages["C000000001"][-1]["text"] == "a? ü 😀"


# --- channels and pages -----------------------------------------------------------------------------------------------


async def test_a_channel_is_looked_for_once(server: FakeSlack, tool: Slack) -> None:
    for number in range(450):
        server.add_channel(f"c{number}")
    for _ in range(2):
        await ask(tool, "history", channel="#c440")
    names = [asked.name for asked in server.asked]
    assert names == ["conversations.list"] * 3 + ["conversations.history"] * 2
    assert server.asked[1].args["cursor"] == "at=200="


async def test_a_channel_that_is_not_there(server: FakeSlack, tool: Slack) -> None:
    with pytest.raises(ToolError, match=r"^Team\.history: there is no channel #nowhere that the bot can see"):
        await ask(tool, "history", channel="#nowhere")


async def test_a_token_that_may_see_public_channels_only() -> None:
    async with FakeSlack(scopes=frozenset({"channels:read", "channels:history"}), refusals_expected=True) as server:
        tool = opened(server)
        assert (await ask(tool, "history", channel="random"))["messages"] == []
        assert len((await ask(tool, "channels"))["channels"]) == 3
        assert [asked.args.get("types") for asked in server.asked] == ["public_channel", None, "public_channel"]
        with pytest.raises(ToolError, match="the token needs chat:write, it has channels:history,channels:read"):
            await ask(tool, "post", channel="random", text="t")
        await tool.close()


async def test_messages_of_the_declared_channel_and_of_a_person(server: FakeSlack) -> None:
    tool = opened(server, channel="#random")
    assert (await ask(tool, "post", text="t"))["channel"] == "C000000002"
    assert (await ask(tool, "post", channel=ADA, text="t"))["channel"] == "C000000004"
    await tool.close()


async def test_pages_go_on_at_the_cursor(server: FakeSlack, tool: Slack) -> None:
    for number in range(5):
        server.say("random", f"m{number}")
    seen: list[str] = []
    cursor = None
    for _ in range(3):
        page = await ask(tool, "history", channel="random", limit=2, **({"cursor": cursor} if cursor else {}))
        seen += [one["text"] for one in page["messages"]]
        cursor = page["cursor"]
    assert (seen, cursor) == (["m4", "m3", "m2", "m1", "m0"], None)
    with pytest.raises(ToolError, match="invalid_cursor; give the cursor of the page before"):
        await ask(tool, "history", channel="random", cursor="x")


# --- files ------------------------------------------------------------------------------------------------------------


async def test_a_file_goes_up_in_three_steps_and_the_token_stays(server: FakeSlack, tool: Slack) -> None:
    await ask(tool, "upload", channel="general", path="report.pdf", thread=FIRST)
    assert [asked.name for asked in server.asked] == [
        "conversations.list",
        "files.getUploadURLExternal",
        "files.completeUploadExternal",
    ]
    assert server.bytes_sent["F000000001"].encode(errors="surrogateescape") == b"%PDF\xff\0"
    assert server.files["F000000001"]["title"] == "report.pdf"
    [upload] = [sent for sent in server.requests if sent.path.startswith("/upload/")]
    assert "authorization" not in upload.headers
    assert server.asked[-1].args["thread_ts"] == FIRST


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("../x", "leads up"),
        ("/etc/passwd", "no path inside the root"),
        ("link", "leads out"),
        (".env", "is closed"),
        ("none", "there is no `none`"),
        ("empty", "is empty"),
    ],
)
async def test_only_files_of_the_folder_go_up(
    server: FakeSlack, tool: Slack, tmp_path: Path, path: str, words: str
) -> None:
    (tmp_path / "link").symlink_to("/etc/passwd")
    (tmp_path / ".env").write_text("x")
    (tmp_path / "empty").touch()
    with pytest.raises(ToolError, match=rf"^Team\.upload: .*{words}"):
        await ask(tool, "upload", channel="general", path=path)
    assert server.bytes_sent == {}


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://files.example.com/x", "not https; nothing was uploaded"),
        ("https://127.0.0.2:1/x", "is at 127.0.0.2 .this machine itself."),
        ("https://169.254.169.254/x", "link-local"),
    ],
)
async def test_a_file_goes_nowhere_else(server: FakeSlack, tool: Slack, url: str, words: str) -> None:
    server.answer(reply({"ok": True, "upload_url": url, "file_id": "F1"}))
    with pytest.raises(ToolError, match=words):
        await ask(tool, "upload", channel="C000000001", path="report.pdf")


async def test_an_upload_that_breaks_off_is_said(server: FakeSlack, tool: Slack) -> None:
    place = reply({"ok": True, "upload_url": f"{server.address}/upload/v1/F000000001", "file_id": "F000000001"})
    server.files["F000000001"] = {}
    server.answer(place, Answer(500, b"no", content_type="text/plain"))
    with pytest.raises(ToolError, match=r"answered 500 to POST /upload/v1/F000000001: no") as caught:
        await ask(tool, "upload", channel="C000000001", path="report.pdf")
    assert not caught.value.retryable


# --- settings, programs -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({}, "token: is missing; give a bot's token"),
        ({"token": "two words"}, "the token holds white space"),
        ({"token": "t", "baseUrl": "http://slack.example/api"}, "plain http to another machine"),
        ({"token": "t", "baseUrl": "ftp://x"}, r"baseUrl \(or SLACK_API_URL\) is no http or https address"),
    ],
)
def test_settings_that_cannot_work_are_told_first(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        tool_factory("Slack")(ToolConfig("Team", "Slack", settings, Path()))


async def test_settings_are_tried_without_changing_anything(server: FakeSlack, tool: Slack) -> None:
    assert await tool.probe() == "halo in Acme"
    server.answer(refusal("invalid_auth"))
    with pytest.raises(ToolError, match=r"^Team: .*invalid_auth; check the token"):
        await tool.probe()


async def play(text: str, env: dict[str, str], replies: dict[str, Any] | None = None, **options: Any) -> RunResult:
    return await runtime(replies, env=env, **options).run(halo_lang.parse(text), "Main", {"x": "hello"})


POST = 'tool Team : Slack()\npipeline Main(x: String) -> Result: |> Team.post("general", x) as sent'


def environment(server: FakeSlack) -> dict[str, str]:
    return {"SLACK_BOT_TOKEN": TOKEN, "SLACK_API_URL": server.url + "/"}


async def test_the_usual_variables_say_where_and_who(server: FakeSlack) -> None:
    result = await play(f'{POST} |> Team.open_dm("{ADA}")', environment(server))
    assert result.output == {"channel": "C000000004"}
    assert server.messages["C000000001"][-1]["text"] == "hello"


async def test_a_token_that_a_server_repeats_is_in_no_output(server: FakeSlack) -> None:
    server.answer(refusal(f"bad_{TOKEN}"))
    seen: list[str] = []
    made = runtime(env=environment(server))
    made.subscribe(lambda event: seen.append(repr(event)))
    result = await made.run(halo_lang.parse(POST), "Main", {"x": "hello"})
    assert result.error is not None
    assert "bad_[REDACTED]" in result.error.message
    assert TOKEN not in f"{seen} {result}"


async def test_an_agent_posts_and_reads(server: FakeSlack) -> None:
    text = (
        "tool Team : Slack()\nagent A [openai/gpt-4o-mini] equips Team\n"
        "pipeline Main(x: String) -> Result: x |> A.go(tools: [Team])"
    )
    calls = [
        {"tool_calls": [{"tool": "Team_post", "args": {"channel": "general", "text": "<!here> hi"}}]},
        {"tool_calls": [{"tool": "Team_update", "args": {"channel": "general", "ts": 1764000004.0001, "text": "x"}}]},
        "done",
    ]
    result = await play(text, environment(server), {"A.go": calls})
    posted, updated = result.context.meta["calls"][0]["tools"]
    assert posted["result"]["ts"] == "1764000004.000100"
    assert "ts takes a text, not a number" in updated["error"]
    assert server.messages["C000000001"][-1]["text"] == "&lt;!here&gt; hi"


async def test_a_run_that_goes_on_posts_nothing_twice(server: FakeSlack, tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.env = environment(server)
    paused = await project.run(f'{POST} |! yield("Go on?")'.replace("pipeline", "@checkpoint\npipeline"), {"x": "hi"},
                               run_id="r")  # fmt: skip
    assert paused.status == "paused"
    assert (await project.runtime().signal("r", True)).status == "completed"
    assert [one["text"] for one in server.messages["C000000001"]].count("hi") == 1
    assert TOKEN.encode() not in project.bytes_of("r")


async def test_a_run_that_broke_off_in_the_middle_of_a_post_asks(server: FakeSlack, tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.env = environment(server)
    server.answer(Answer(hang=True))
    task = asyncio.create_task(project.run(POST.replace("pipeline", "@checkpoint\npipeline"), {"x": "hi"}, run_id="r"))
    await server.hanging.wait()
    task.cancel()
    await asyncio.wait([task])
    result = await project.runtime().resume("r")
    assert [question.kind for question in result.interrupts] == ["in_doubt"]
    assert len(server.requests) == 1


async def test_a_cassette_answers_in_place_of_slack(server: FakeSlack, tmp_path: Path) -> None:
    first = await play(POST, environment(server), cassette=Cassette.record(tmp_path / "tape"))
    count = len(server.requests)
    again = await play(POST, {}, cassette=Cassette.replay(tmp_path / "tape"))
    assert (again.output, len(server.requests)) == (first.output, count)
