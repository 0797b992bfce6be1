"""The catalogue: lookups, signatures that bind, and examples that are true."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from halo_lang import SourceDecodeError, catalog, check, decode, not_utf8, parse
from halo_lang.catalog import Method, Parameter, Problem, ProviderSpec, Signature, codes
from halo_lang.catalog.registry import Registry
from halo_lang.catalog.rules import RULES
from halo_lang.catalog.signature import duration_seconds, optional, required
from halo_runtime.models.pricing import is_priced
from tests.lang.checking import BOT, analysis

PROVIDERS = list(catalog.providers())
METHODS = [(spec, method) for spec in PROVIDERS for method in spec.methods]
PAGE = Path(__file__).resolve().parents[2] / "docs/reference/diagnostics.md"

TWO = Signature((required("text", "string"), optional("count", "integer", minimum=1, default=3)))


# --- lookups


def test_system_methods_are_found_by_name() -> None:
    pick = catalog.system_method("Pick")
    assert pick is not None
    assert str(pick.signature) == "(value, fields?, maxChars?)"
    assert catalog.system_method("print") is None


def test_events_pass_the_value_and_results_do_not() -> None:
    passing = {method.name for method in catalog.SYSTEM_METHODS if method.passes}
    events = {method.name for method in catalog.SYSTEM_METHODS if method.event}
    assert passing - events == {"Print", "Log", "Sleep"}
    assert events == {"ResolveIncident", "Publish", "Distribute", "TriggerWebhook", "Notify"}


@pytest.mark.parametrize("spelling", ["get_issue", "getIssue"])
def test_methods_are_found_in_snake_case_and_camel_case(spelling: str) -> None:
    github = catalog.provider("GitHub")
    assert github is not None
    found = github.method(spelling)
    assert found is not None
    assert found.name == "get_issue"


def test_our_own_multi_word_methods_have_both_spellings_too() -> None:
    workspace = catalog.provider("Workspace")
    assert workspace is not None
    assert workspace.method("applyPatch") is workspace.method("apply_patch") is not None
    assert workspace.method("ApplyPatch") is None


def test_an_open_provider_has_a_method_for_every_name() -> None:
    rest = catalog.provider("REST")
    assert rest is not None
    assert rest.method("weather") is rest.open_methods
    assert rest.method("get") is not rest.open_methods


def test_the_exact_arguments_of_the_key_value_store() -> None:
    store = catalog.provider("KV")
    assert store is not None
    assert {method.name: str(method.signature) for method in store.methods} == {
        "get": "(key)",
        "set": "(key, value, ttl?)",
        "delete": "(key)",
        "list": "(prefix?, limit?, cursor?)",
        "incr": "(key, by?)",
        "cas": "(key, expected, value)",
    }


REST = "get head post put patch delete"
PAGE_METHODS = "goto text html links click fill select press waitFor screenshot pdf close"
SQL = "query execute schema explain"
OFFERS = {
    "REST": ("base · apiKey headers timeout allowHosts allowStatus", REST),
    "GET": ("base · apiKey headers timeout allowHosts allowStatus", "get head"),
    "POST": ("url · headers timeout allowHosts allowStatus", "post"),
    "PostgreSQL": ("url · readOnly timeout maxRows", SQL),
    "SQL": ("url · readOnly timeout maxRows", SQL),
    "VectorStore": ("namespace path k minScore model", "add addMany search get delete count ingest"),
    "File": ("path maxTurns maxTokens", "append read clear"),
    "KV": ("path namespace", "get set delete list incr cas"),
    "Workspace": (
        "root · write deny",
        "read write edit append list glob search move delete mkdir stat applyPatch",
    ),
    "Bash": ("allow cwd timeout env sandbox", "run"),
    "Code": ("language · sandbox timeout memory", "run"),
    "Browser": ("headless · allowHosts timeout", PAGE_METHODS),
    "Chrome": ("cdp · allowHosts timeout", PAGE_METHODS),
    "Documents": ("root", "read pages chunks tables search"),
    "MCP": ("server · args env headers tools timeout allowHosts pins", ""),
    "Slack": (
        "token · channel baseUrl",
        "post update delete ephemeral history replies channels openDm react user upload",
    ),
    "Email": (
        "smtp imap user password from allowRecipients · notify smtpPort imapPort imapUser imapPassword files timeout",
        "send reply list read search markRead move delete attachment",
    ),
    "GitHub": (
        "token · repo baseUrl",
        "list_issues get_issue create_issue update_issue close_issue list_comments create_comment add_labels "
        "remove_label set_labels add_assignees list_pulls get_pull create_pull list_files create_review merge_pull "
        "get_repo get_file put_file list_tree list_commits compare list_checks list_workflow_runs search_issues "
        "search_code search_repositories",
    ),
    "Linear": (
        "key · team baseUrl",
        "get_issue list_issues search_issues create_issue update_issue add_comment add_label remove_label archive "
        "attach_link list_teams list_states list_labels list_users list_projects viewer",
    ),
    "Figma": (
        "token · baseUrl",
        "get_file get_nodes get_images get_image_fills get_versions get_meta list_comments post_comment "
        "delete_comment components styles variables dev_resources me",
    ),
}
"""What each provider takes, by position and (behind the `·`) by name only, and its methods (spec 5 and reference 2)."""


@pytest.mark.parametrize("spec", PROVIDERS, ids=lambda spec: spec.name)
def test_a_provider_takes_and_offers_what_the_reference_says(spec: ProviderSpec) -> None:
    by_position = [one.name for one in spec.config.parameters if not one.named_only]
    by_name = [one.name for one in spec.config.parameters if one.named_only]
    config = " · ".join(" ".join(names) for names in (by_position, by_name) if names)
    assert (config, " ".join(spec.method_names)) == OFFERS[spec.name]


@pytest.mark.parametrize(("spec", "method"), METHODS, ids=lambda entry: entry.name)
def test_what_must_be_given_comes_first_and_reading_can_be_repeated(spec: ProviderSpec, method: Method) -> None:
    by_position = [one.required for one in method.signature.parameters if not one.named_only]
    assert by_position == sorted(by_position, reverse=True)
    assert method.idempotent or method.effect != "read"
    defaults = [one for one in method.signature.parameters if one.default is not None]
    assert [one.name for one in defaults if one.required or one.problem(one.default)] == []


DESTRUCTIVE = (
    "REST.delete KV.delete File.clear VectorStore.delete PostgreSQL.execute SQL.execute Workspace.move "
    "Workspace.delete Bash.run Slack.delete Email.delete GitHub.merge_pull Linear.archive Figma.delete_comment"
)


def test_what_cannot_be_taken_back_is_marked() -> None:
    marked = {f"{spec.name}.{method.name}" for spec, method in METHODS if method.effect == "destructive"}
    assert marked == set(DESTRUCTIVE.split())


def test_a_call_that_may_have_arrived_is_repeated_only_where_that_changes_nothing() -> None:
    twice = {f"{spec.name}.{method.name}" for spec, method in METHODS if method.effect == "write" and method.idempotent}
    assert {"KV.set", "Workspace.write", "REST.put", "GitHub.add_labels", "VectorStore.add"} <= twice
    assert twice.isdisjoint({"KV.incr", "KV.cas", "REST.post", "Slack.post", "Email.send", "GitHub.create_issue"})


def test_every_provider_of_the_seeds_is_there() -> None:
    names = " ".join(spec.name for spec in PROVIDERS)
    assert names == (
        "REST GET POST Browser Chrome MCP KV File VectorStore PostgreSQL SQL Workspace Bash Code Documents "
        "Slack Email GitHub Linear Figma"
    )


def test_every_rule_is_there() -> None:
    names = " ".join(spec.name for spec in RULES)  # without those that other tests or packages add
    assert names == (
        "Redact Block Allow Deny AllowModels DenyModels AllowTools DenyTools Approve MaxSpend MaxTokens MaxCalls "
        "MaxToolCalls MaxLatency RateLimit RequireJSON RequireSchema RequireCitation MaxLength MinLength Language "
        "Match Audit Taint"
    )


@pytest.mark.parametrize(
    ("model", "service", "wire"),
    [
        ("openai/gpt-4o-mini", "openai", "gpt-4o-mini"),
        ("gpt-4o-mini", "openai", "gpt-4o-mini"),
        ("o3-mini", "openai", "o3-mini"),
        ("openai/o3", "openai", "o3"),
        ("claude-sonnet-4-5", "anthropic", "claude-sonnet-4-5"),
        ("gemini/gemini-3-1-pro", "google", "gemini-3-1-pro"),
        ("openrouter/anthropic/claude-opus-5.5", "openrouter", "anthropic/claude-opus-5.5"),
        ("ollama/llama3.2:3b", "ollama", "llama3.2:3b"),
        ("local/smollm2", "ollama", "smollm2"),
        ("scripted/anything", "scripted", "anything"),
    ],
)
def test_a_model_id_leads_to_its_service(model: str, service: str, wire: str) -> None:
    route = catalog.model_route(model)
    assert route is not None
    assert (route.entry.service, route.model) == (service, wire)


@pytest.mark.parametrize("model", ["o3", "gpt4", "acme/gpt-4o", "openai/", "/gpt-4o", "mistral-large", ""])
def test_a_model_id_without_a_service_leads_nowhere(model: str) -> None:
    assert catalog.model_route(model) is None


def test_a_registry_refuses_a_name_that_is_taken() -> None:
    kept = catalog.provider("KV")
    assert kept is not None
    with pytest.raises(ValueError, match="KV exists already"):
        catalog.register_provider(replace(kept, doc="another"))
    assert catalog.provider("KV") is kept


def test_a_registry_finds_entries_by_alias_and_keeps_their_order() -> None:
    first = ProviderSpec("B", Signature(), (), "", "", aliases=("Bee",))
    registry = Registry("provider", [first, ProviderSpec("A", Signature(), (), "", "")])
    assert registry.get("Bee") is first
    assert registry.names == ("B", "Bee", "A")
    with pytest.raises(ValueError, match="Bee exists already"):
        registry.register(ProviderSpec("Bee", Signature(), (), "", ""))


# --- binding


def test_arguments_bind_by_position_then_by_name() -> None:
    bound = TWO.bind(["a"], {"count": 5})
    assert bound.problems == ()
    assert bound.arguments == {"text": "a", "count": 5}


def test_values_fill_in_defaults() -> None:
    assert TWO.bind(["a"], {}).values() == {"text": "a", "count": 3}


def test_what_does_not_bind_is_told_apart() -> None:
    bound = TWO.bind([], {"txt": "a"})
    assert bound.problems == (Problem("unknown", "txt"), Problem("missing", "text"))
    assert TWO.bind(["a", 1, 2], {}).problems == (Problem("surplus", "", 2),)
    assert TWO.bind(["a"], {"text": "b"}).problems == (Problem("duplicate", "text"),)


def test_two_names_of_one_parameter_are_a_duplicate() -> None:
    bound = catalog.AGENT_SETTINGS.bind([], {"temp": 0, "temperature": 1})
    assert bound.problems == (Problem("duplicate", "temperature"),)


def test_named_parameters_take_no_position() -> None:
    rest = catalog.provider("REST")
    assert rest is not None
    assert rest.config.bind(["api.example.com", "key"], {}).problems == (Problem("surplus", "", 1),)


def test_the_rest_is_listed_under_its_name() -> None:
    redact = catalog.rule("Redact")
    assert redact is not None
    bound = redact.signature.bind(["Email", "Phone"], {"restore": True})
    assert bound.values() == {"kinds": ["Email", "Phone"], "restore": True}
    assert redact.signature.bind([], {}).problems == (Problem("missing", "kinds"),)


def test_one_of_several_arguments_may_be_enough() -> None:
    block = catalog.rule("Block")
    assert block is not None
    assert block.signature.bind([], {"Topic": "weather"}).problems == ()
    assert block.signature.bind([], {"threshold": 0.5}).problems == (Problem("missing", "kinds"),)


def test_open_signatures_keep_further_names() -> None:
    rest = catalog.provider("REST")
    assert rest is not None
    assert rest.open_methods is not None
    bound = rest.open_methods.signature.bind([], {"city": "Oslo"})
    assert bound.problems == ()
    assert bound.values() == {"city": "Oslo"}


# --- values of a run


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        (Parameter("p", "string"), "a"),
        (Parameter("p", "integer"), 3.0),
        (Parameter("p", "number"), 0.5),
        (Parameter("p", "boolean"), False),
        (Parameter("p", "duration", positive=True), "1.5h"),
        (Parameter("p", "list", items="string"), ["a"]),
        (Parameter("p", "object"), {}),
        (Parameter("p", "string"), None),
        (Parameter("p", "any", required=True), None),
        (Parameter("p", "string", choices=("a", "b")), "b"),
    ],
)
def test_right_values_have_no_problem(parameter: Parameter, value: object) -> None:
    assert parameter.problem(value) is None


@pytest.mark.parametrize(
    ("parameter", "value", "problem"),
    [
        (Parameter("p", "string"), 5, "takes a text, not a number"),
        (Parameter("p", "integer"), True, "takes a whole number, not a Boolean"),
        (Parameter("p", "integer", minimum=1), 0, "takes a whole number of at least 1"),
        (Parameter("p", "integer", minimum=1, maximum=20), 21, "takes a whole number from 1 to 20"),
        (Parameter("p", "number"), "5", "takes a number, not a text"),
        (Parameter("p", "duration"), "soon", "takes a duration such as 500ms, 30s or 5m, not a text"),
        (Parameter("p", "duration", positive=True), "0s", "takes a duration over 0 such as 500ms, 30s or 5m"),
        (Parameter("p", "list", items="string"), ["a", 1], "takes a list of texts"),
        (Parameter("p", "string", choices=("a", "b")), "c", 'takes one of "a", "b"'),
        (Parameter("p", "string", required=True), None, "takes a text, not null"),
    ],
)
def test_wrong_values_are_told_in_words(parameter: Parameter, value: object, problem: str) -> None:
    assert parameter.problem(value) == problem


def test_bound_values_are_judged_together() -> None:
    assert TWO.bind([1], {"count": 0}).wrong_values() == [
        "text takes a text, not a number",
        "count takes a whole number of at least 1",
    ]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("500ms", 0.5), ("2s", 2), ("1.5h", 5400), ("1d", 86400), ("5", None), ("s", None), ("", None)],
)
def test_durations_are_read_from_text(text: str, seconds: float | None) -> None:
    assert duration_seconds(text) == seconds


def test_a_signature_is_a_json_schema_for_models() -> None:
    schema = TWO.json_schema()
    assert schema == {
        "type": "object",
        "properties": {"text": {"type": "string"}, "count": {"type": "integer", "minimum": 1}},
        "required": ["text"],
        "additionalProperties": False,
    }


# --- what the catalogue shows is true


@pytest.mark.parametrize("spec", PROVIDERS, ids=lambda spec: spec.name)
def test_a_providers_example_checks(spec: ProviderSpec) -> None:
    assert analysis(spec.example).errors == ()


@pytest.mark.parametrize(("spec", "method"), METHODS, ids=lambda entry: entry.name)
def test_a_methods_example_calls_it(spec: ProviderSpec, method: Method) -> None:
    tool = method.example.partition(".")[0]
    assert method.example.startswith(f"{tool}.{method.name}(") or tool == "Api"
    text = (
        f"tool {tool} : {spec.example.partition(' : ')[2]}\npipeline Main(x: String) -> Result: x |> {method.example}"
    )
    assert analysis(text).errors == ()


@pytest.mark.parametrize("method", catalog.SYSTEM_METHODS, ids=lambda method: method.name)
def test_a_system_methods_example_checks(method: Method) -> None:
    assert analysis(f"pipeline Main(x: String) -> Result: x |> {method.example}").errors == ()


@pytest.mark.parametrize("spec", list(catalog.rules()), ids=lambda spec: spec.name)
def test_a_rules_example_checks(spec: catalog.RuleSpec) -> None:
    tools = "tool Repo : GitHub\ntool Shell : Bash\ntool Inbox : Email\ntool Web : Browser\n"
    assert analysis(f"{tools}schema Answer {{ text: String }}\npolicy P : {spec.example}").errors == ()


@pytest.mark.parametrize("spec", list(catalog.directives()), ids=lambda spec: spec.name)
def test_a_directives_example_checks_wherever_it_applies(spec: catalog.DirectiveSpec) -> None:
    bodies = {"agent": "agent Clerk [openai/gpt-4o-mini]", "pipeline": "pipeline Main(x: String) -> Result: x"}
    for target in spec.applies_to:
        assert analysis(f"{BOT.replace('Bot', 'Writer')}{spec.example}\n{bodies[target]}").errors == ()


def test_everything_in_the_catalogue_says_what_it_is_for() -> None:
    entries = [*PROVIDERS, *(method for _, method in METHODS), *catalog.rules(), *catalog.directives()]
    assert [entry.name for entry in (*entries, *catalog.SYSTEM_METHODS) if not entry.doc or not entry.example] == []


# --- codes


def _codes(text: str) -> list[str]:
    try:
        source = decode(text.encode("utf-8", "surrogateescape"))
    except SourceDecodeError as error:
        return [not_utf8(error).code]
    return [diagnostic.code for diagnostic in check(parse(source), is_priced=is_priced).diagnostics]


@pytest.mark.parametrize("code", codes.CODES, ids=lambda code: code.name)
def test_a_codes_wrong_example_gives_exactly_that_code_and_its_right_one_none(code: codes.Code) -> None:
    assert _codes(code.wrong) == [code.name]
    assert _codes(code.right) == []


def test_a_code_is_explained_in_any_letter_case_and_an_unknown_one_not() -> None:
    text = codes.explain("hl405")
    assert text is not None
    assert text.startswith("HL405 (error): a loop without a stage to go back to\n")
    assert codes.explain("HL999") is None


def test_the_page_of_diagnostics_is_what_the_codes_say() -> None:
    assert PAGE.read_text("utf-8") == codes.page()
