"""What agent calls would send, foretold: the same as is sent, and visible holes where values are not there yet."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import halo_lang
from halo_runtime.models.base import ModelRequest
from halo_runtime.policies import output
from halo_runtime.policies.base import ALLOW, AskModel, Decision, Examined, Finding, Point
from halo_runtime.preview import CallPreview
from halo_runtime.runtime import Runtime
from tests.runtime.support import StubTool, runtime, stubbed

AGENT = """agent A [openai/gpt-4o-mini, temp: 0.2]
  system "You know {{topic}}."
  equips Sh
tool Sh: Bash(allow: ["*"])
"""


def previews(text: str, given: dict[str, Any] | None = None, world: Runtime | None = None) -> list[CallPreview]:
    """A preview of every call of a program, each with what of `given` it can take."""
    return asyncio.run(previewed(text, given or {}, world or runtime()))


async def previewed(text: str, given: dict[str, Any], world: Runtime) -> list[CallPreview]:
    program = halo_lang.parse(text)
    return [
        await world.preview(program, found, {name: given[name] for name in found.names & given.keys()})
        for found in world.agent_calls(program)
    ]


def user(preview: CallPreview) -> str:
    assert preview.request is not None
    return preview.request.messages[-1].content


def unknown(preview: CallPreview) -> dict[str, str | None]:
    return {found.placeholder: found.name for found in preview.unknown}


# --- the same as is sent --------------------------------------------------------------------------------------

WHOLE = """schema Facts { title: String }
agent A [openai/gpt-4o-mini, temp: 0.2, max_tokens: 50]
  system "You know {{topic}}."
  equips Sh
tool Sh: Bash(allow: ["*"])
pipeline Main(topic: String, items: List) -> Facts:
  topic
    |> A.outline("About {{topic}}.") as plan
    |? (plan != "")
    |> A.refine(tone: "dry", n: 2.0)
    |* { A.left("L {{plan}}"), A.right("R {{A.outline}}") } as sides
    |* each(item in items) => A.check("{{index}}: {{item.name}}", item, tools: auto) as checked
    |> System.Print("seen {{sides.left}}")
    |> System.Value(checked)
    |> A.run("Title it.", checked, tool: Sh, command: "ls {{topic}}", temperature: 1, tool_result_chars: 3)
"""
REPLIES = {
    "outline": "a plan", "refine": "refined", "left": "l", "right": "r", "check": "ok", "run": '{"title": "T"}',
}  # fmt: skip


async def test_every_call_of_a_program_is_foretold_to_the_letter_when_its_values_are_given() -> None:
    sent: list[ModelRequest] = []

    async def answer(request: ModelRequest) -> str:
        sent.append(request)
        return REPLIES[request.method]

    world, _ = stubbed(answer)
    world.register_tool_provider("Bash", StubTool(lambda method, args: "abcdef"))
    program = halo_lang.parse(WHOLE)
    inputs: dict[str, Any] = {"topic": "cats", "items": [{"name": "x"}]}
    assert (await world.run(program, "Main", inputs)).status == "completed"
    given = {**inputs, "plan": "a plan", "refine": "refined", "left": "l", "right": "r", "checked": ["ok"]}
    foretold = [preview.request for preview in await previewed(WHOLE, {**given, "Sh.run": "abcdef"}, world)]
    assert foretold == sent
    assert len(sent) == 6


def test_without_values_the_placeholders_stay_and_are_named_with_what_they_wait_for() -> None:
    outline, refine, left, _, check, run = previews(WHOLE)
    assert user(outline) == "Task: outline\n\nInstructions:\nAbout {{topic}}."
    assert unknown(outline) == {"{{topic}}": "topic"}
    assert user(refine).endswith("Input:\n{{plan}}")
    assert user(left).endswith("L {{plan}}")
    assert user(check).endswith("{{index}}: {{item.name}}\n\nInput:\n{{item}}")
    assert {found.source for found in check.unknown} >= {"an item of `|* each(item) => A.check`, line 12"}
    assert user(run).endswith("Input:\n{{checked}}\n\nTool result (Sh.run):\n{{Sh.run}}")
    assert {found.source for found in run.unknown} >= {"`|* each(item) => A.check`, line 12"}


def test_nothing_is_sent_and_no_tool_is_called() -> None:
    world, model = stubbed(lambda request: asyncio.sleep(0, ""))
    tool = StubTool(lambda method, args: "x")
    world.register_tool_provider("Bash", tool)
    assert len(previews(WHOLE, world=world)) == 6
    assert (model.requests, tool.calls, tool.config) == ([], [], None)


# --- what flows -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stages", "given", "text"),
    [
        ("1 |> A.go()", {}, "1"),
        ("x |> A.go()", {"x": [1]}, "[1]"),
        ('"say {{x}}" |> A.go()', {}, "say {{x}}"),
        ("x.deep |> A.go()", {}, "{{x.deep}}"),
        ("x |> System.Log() |? (x == 1) |> A.go()", {"x": 1}, "1"),
        ("x |> System.Value([x, y]) |> A.go()", {"x": 1}, '[1,"{{y}}"]'),
        ("x |> System.Pick(x) as few |> A.go()", {"x": 1}, "{{few}}"),
        ("x |> System.Pick(x) as few |> A.go()", {"few": {"a": 1}}, '{"a":1}'),
        ('x |! yield("?") as said |> A.go()', {}, "{{said}}"),
        ('x |! yield("?") |> A.go()', {}, "{{current}}"),
        ('x |! yield("?") |> A.go()', {"current": "no"}, "no"),
        ("x ~> listen(UI.Click) |> A.go()", {}, "{{UI.Click}}"),
        ("x ~> listen(UI.Click) |> A.go()", {"UI.Click": 7}, "7"),
        ("x |* { System.Value(1) as one, B() } |> A.go()", {}, '{"one":"{{one}}","B":"{{B}}"}'),
        ("x |* { System.Value(1) as one, B() } |> A.go()", {"one": 1, "B": 2}, '{"one":1,"B":2}'),
        ("x |* { System.Value(1) as one, B() } as both |> A.go()", {"both": 3}, "3"),
        ("x |? { (x == 1) => System.Value(1), else => B() } as way |> A.go()", {}, "{{way}}"),
        ("x |* each(i in x) => B() as done |> A.go()", {}, "{{done}}"),
        ("x |* each(i in x) => A.go()", {"x": [{"n": 5}, 6]}, '{"n":5}'),
        ("x |* each(i in x) => A.go()", {"x": [], "i": 9}, "9"),
        ("x |> B() |> A.go()", {}, "{{B}}"),
    ],
)
def test_the_flowing_value_is_followed_as_far_as_it_is_known(stages: str, given: dict[str, Any], text: str) -> None:
    program = f"{AGENT}pipeline B() -> Result: 1\npipeline Main(x: Any, y: Any, topic: Any) -> Result: {stages}"
    assert user(previews(program, given)[0]).endswith(f"Input:\n{text}")


def test_a_result_that_is_given_stands_under_all_its_names() -> None:
    text = (
        f"{AGENT}pipeline Main(topic: Any) -> Result: 1 |> A.one() as uno "
        '|> A.two("{{uno}} {{one}} {{A.one}} {{context.data.A.one}} {{uno.n}}")'
    )
    for name in ("uno", "one", "A.one"):
        assert "1 1 1 1 {{uno.n}}" not in user(previews(text, {name: {"n": 1}})[1])
        assert '{"n":1} {"n":1} {"n":1} {"n":1} 1' in user(previews(text, {name: {"n": 1}})[1])


def test_a_field_that_a_given_value_does_not_have_is_missing_as_in_a_run() -> None:
    text = f'{AGENT}pipeline Main(x: Any, topic: Any) -> Result: x |> A.go("{{{{x.no}}}}", x.no)'
    (preview,) = previews(text, {"x": {}, "topic": "t"})
    assert user(preview).endswith("Instructions:\n{{x.no}}\n\nInput:\nnull")
    assert preview.unknown == ()


def test_the_figures_of_the_run_are_not_known() -> None:
    text = f"{AGENT}pipeline Main(topic: Any) -> Result: 1 |> A.go(context.meta.cost)"
    (preview,) = previews(text, {"topic": "t"})
    assert user(preview).endswith("{{context.meta.cost}}")
    assert unknown(preview) == {"{{context.meta.cost}}": None}


# --- settings, tools, schema ----------------------------------------------------------------------------------


def test_a_setting_that_is_not_known_is_left_out_and_said() -> None:
    text = f"{AGENT}pipeline Main(x: Any, topic: Any) -> Result: x |> A.go(temperature: x, max_tokens: 5)"
    (preview,) = previews(text, {"topic": "t"})
    assert preview.settings == {"max_tokens": 5}
    assert preview.warnings == ("temperature is not known yet ({{x}}), so it is left out here",)


def test_a_setting_that_cannot_be_is_the_error_of_the_run() -> None:
    text = f"{AGENT}pipeline Main(x: Any, topic: Any) -> Result: x |> A.go(temperature: x)"
    (preview,) = previews(text, {"x": "warm"})
    assert preview.request is None
    assert preview.error is not None
    assert preview.error.message == "A.go: temperature must be a number, not warm"


def test_the_tool_before_the_prompt_is_told_with_what_is_wrong_with_its_arguments() -> None:
    text = f"{AGENT}pipeline Main(x: Any, topic: Any) -> Result: x |> A.run(command: x, tool: Sh)"
    (right,), (wrong,) = previews(text, {"x": "ls"}), previews(text, {"x": 7})
    assert right.first_tool is not None
    assert (right.first_tool.arguments, right.first_tool.problem) == ({"command": "ls"}, None)
    assert wrong.first_tool is not None
    assert "command" in (wrong.first_tool.problem or "")


def test_functions_are_offered_with_their_schemas_and_the_reply_has_one() -> None:
    text = f"schema S {{ n: Number }}\n{AGENT}pipeline Main(topic: Any) -> S: 1 |> A.go(tools: auto)"
    document = previews(text)[0].to_json()
    assert [tool["name"] for tool in document["tools"]] == ["Sh_run"]
    assert document["tools"][0]["parameters"]["required"] == ["command"]
    assert document["schema"]["required"] == ["n"]
    assert document["jsonAsked"] is True


@pytest.mark.parametrize(
    ("tool", "tools", "offered"),
    [
        ('File("c.jsonl")', "auto", ["read"]),
        ('File("c.jsonl")', "[Sh]", ["append", "read", "clear"]),
        ('Workspace(".")', "auto", ["read", "list", "glob", "search", "stat"]),
        ('Workspace(".")', "[Sh]", ["read", "list", "glob", "search", "stat"]),
        ('SQL("sqlite:///a.db")', "auto", ["query", "schema", "explain"]),
        ('SQL("sqlite:///a.db", readOnly: false)', "auto", ["query", "execute", "schema", "explain"]),
        ("KV", "auto", ["get", "set", "delete", "list", "incr", "cas"]),
    ],
)
def test_what_cannot_work_or_was_not_meant_is_not_offered(tool: str, tools: str, offered: list[str]) -> None:
    text = AGENT.replace('Bash(allow: ["*"])', tool)
    (preview,) = previews(f"{text}pipeline Main(topic: Any) -> Result: 1 |> A.go(tools: {tools})")
    assert [one["name"].removeprefix("Sh_") for one in preview.to_json()["tools"]] == offered


def chatting(path: Path) -> str:
    agent = "agent A [openai/gpt-4o-mini]\n  equips Chat\n"
    return f'{agent}store Chat: File("{path}", maxTurns: 2)\npipeline Main(topic: Any) -> Any: topic |> A.go()'


async def test_what_an_equipped_conversation_remembers_is_shown_and_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    text = chatting(path)

    async def answer(request: ModelRequest) -> str:
        return "so"

    world, model = stubbed(answer)
    (first,) = await previewed(text, {"topic": "one"}, world)
    assert not path.exists()
    for topic in ("one", "two"):
        (await world.run(halo_lang.parse(text), "Main", {"topic": topic})).raise_for_status()
    kept = path.read_bytes()
    (third,) = await previewed(text, {"topic": "three"}, world)
    assert path.read_bytes() == kept
    await world.run(halo_lang.parse(text), "Main", {"topic": "three"})
    assert first.request is not None
    assert third.request is not None
    assert first.request.messages == model.requests[0].messages
    assert third.request.messages == model.requests[2].messages
    assert [message.role for message in third.request.messages] == ["user", "assistant", "user"]


def test_a_conversation_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "chat.jsonl").write_text("no JSON\n", "utf-8")
    (preview,) = previews(chatting(tmp_path / "chat.jsonl"))
    assert "what Chat remembers is not shown: Chat.read: " in preview.warnings[0]
    assert preview.error is None


def test_what_the_family_leaves_out_is_said() -> None:
    text = "agent C [anthropic/claude-opus-5-1, temp: 1]\npipeline Main(x: Any) -> Result: x |> C.go()"
    assert previews(text)[0].warnings == ("claude-opus-5-1 does not take temperature; it was left out",)


def test_a_model_that_leads_nowhere_is_said() -> None:
    (preview,) = previews("agent C [openai/x]\npipeline Main(x: Any) -> Result: x |> C.go()", {}, runtime(model="what"))
    assert preview.model == "what"
    assert "names no service" in preview.warnings[0]


# --- policies -------------------------------------------------------------------------------------------------


class _Words:
    """A rule that takes out "secret" and blocks "forbidden", in what is sent."""

    points: frozenset[Point] = frozenset({"input"})

    def evaluate(self, examined: Examined) -> Decision:
        place = examined.text.find("secret")
        if "forbidden" in examined.text:
            return Decision("block", "a forbidden word")
        if place < 0:
            return ALLOW
        return Decision("redact", None, (Finding("WORD", place, place + 6, "secret"),))


class _Judged(_Words):
    """The same, asking a model, which a preview must not do."""

    judge_model = "openai/judge"

    def evaluate(self, examined: Examined) -> Decision:
        return ALLOW

    async def judge(self, examined: Examined, ask: AskModel) -> Decision:
        raise AssertionError("nothing is asked")


GUARDED = """policy P: MaxLength(5)
agent A [openai/gpt-4o-mini]
  requires P
pipeline Main(x: Any) -> Result: x |> A.go()
"""


def test_a_rule_that_asks_a_model_is_named_and_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "max_length", lambda args: _Judged())
    (preview,) = previews(GUARDED, {"x": "forbidden"})
    assert preview.warnings == ("policy P, rule MaxLength(5) asks a model, so it is not applied here",)
    assert not preview.is_blocked


@pytest.mark.parametrize(
    ("value", "text", "actions", "blocked"),
    [
        ("fine", "fine", [], False),
        ("a secret", "a [WORD_1]", ["redact"], False),
        ("forbidden", "forbidden", ["block"], True),
    ],
)
def test_input_rules_are_applied_and_said(
    value: str, text: str, actions: list[str], blocked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "max_length", lambda args: _Words())
    (preview,) = previews(GUARDED, {"x": value})
    assert user(preview).endswith(f"Input:\n{text}")
    assert [line["action"] for line in preview.policies] == actions
    assert [line["reason"] is not None for line in preview.policies] == [blocked] * len(actions)
    assert preview.is_blocked is blocked


def test_a_preview_is_json() -> None:
    import json

    for preview in previews(WHOLE):
        assert json.loads(json.dumps(preview.to_json())) == preview.to_json()
    assert replace(previews(WHOLE)[0], request=None).to_json()["messages"] is None
