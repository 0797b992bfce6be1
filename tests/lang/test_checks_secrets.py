"""Secrets written into a program (HL508)."""

from __future__ import annotations

import pytest

from halo_lang import Severity
from tests.lang.checking import body, found, marked, only

# Put together here, so that nothing that scans repositories for keys takes them for some.
SHORT = "x7Kq2mVn9RtLw4ZpYc8HsBd1"
LONG = f"{SHORT}JfGa6EuT0oNi"
GITHUB = f"ghp_{LONG}"


@pytest.mark.parametrize(
    "secret",
    [
        GITHUB,
        "github_pat_11ABCDEFG0aBcDeFgHiJkL",
        "glpat-x7Kq2mVn9RtLw4ZpYc8H",
        f"sk-{LONG}",
        f"sk-proj-{LONG}",
        f"sk-ant-api03-{LONG}",
        f"sk_live_{SHORT}",
        f"xoxb-123456789012-123456789012-{SHORT}",
        "AKIAIOSFODNN7EXAMPLE",
        f"AIzaSyA-{SHORT}JfGa6E",
        "hf_x7KqAmVnBRtLwDZpYcEHsBdFJfGa",
        f"lin_api_{LONG}",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
        "-----BEGIN RSA PRIVATE KEY-----",
        "Authorization: Bearer 0123456789abcdef",
        f"GITHUB_TOKEN={GITHUB}",
        f"https://hooks.slack.com/services/T0123ABCD/B0123ABCD/{SHORT}",
        "postgres://ada:lovelace1815@db.example.com/app",
        SHORT,
    ],
)
def test_what_looks_like_the_key_of_a_service_is_reported(secret: str) -> None:
    literal = f"'{secret}'"
    assert marked(f"tool T : MCP('server', args: ['-y', {literal}])") == [f"HL508 {literal}"]


@pytest.mark.parametrize(
    "text",
    [
        "acme/service-2024",
        "https://api.example.com/v1/items/x7Kq2mVn9RtLw4ZpYc8HsBd1",
        "https://api.example.com:8080/users/ada@example.com",
        "postgres://postgres:postgres@localhost:5432/app",
        "postgres://ada:{password}@db.example.com/app",
        "sqlite:///data/2024/customers.db",
        "/home/ada/Projects2024/HaloWorkbench/Data01",
        "550e8400-e29b-41d4-a716-446655440000",
        "da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "01ARZ3NDEKTSV4RRFFQ69G5FAV",
        "SupportTicketsCollection2024Production",
        "customers_2024_01_31_full_export_final",
        "Meta-Llama-3-1-8B-Instruct-Q4_K_M",
        "sk-learn-classification-2024",
        "@modelcontextprotocol/server-filesystem",
        "Content-Type: application/json; charset=utf-8",
        "ghp_short",
        "SELECT id FROM Users WHERE name = 'x' AND age > 21",
        "Env.GITHUB_TOKEN",
    ],
)
def test_addresses_paths_names_and_ids_are_no_secrets(text: str) -> None:
    assert found(f'tool T : MCP("server", args: ["-y", "{text}"])') == []


@pytest.mark.parametrize(
    ("declaration", "marks"),
    [
        ('tool T : GitHub("0123456789")', ['HL508 "0123456789"']),
        ('tool T : Slack(token: "letmein")', ['HL508 "letmein"']),
        ('tool T : Email(smtp: "smtp.example.org", user: "ada", password: "hunter2")', ['HL508 "hunter2"']),
        ('tool T : REST("api.example.com", apiKey: "da39a3ee5e6b4b0d")', ['HL508 "da39a3ee5e6b4b0d"']),
        ('store T : KV("memory.db", namespace: "letters-to-ada")', []),
        ('tool T : REST("api.example.com", apiKey: "test")', []),
        ("tool T : GitHub(Env.GITHUB_TOKEN)", []),
        ('tool T : GitHub("Env.GITHUB_TOKEN")', []),
    ],
)
def test_whatever_is_written_where_a_secret_belongs_is_one(declaration: str, marks: list[str]) -> None:
    assert marked(declaration) == marks


def test_prompts_and_conditions_are_not_looked_at() -> None:
    assert found(body(f'|> Bot.go("{GITHUB}") |? (x != "{GITHUB}")')) == []


def test_one_literal_is_one_finding_and_its_message_does_not_repeat_it() -> None:
    secret = only(f'tool T : GitHub("{GITHUB}")')
    assert secret.severity is Severity.WARNING
    assert GITHUB not in f"{secret.message}{secret.hint}"
    assert "GitHub token" in secret.message


def test_a_very_long_text_takes_no_longer_than_its_length() -> None:
    assert found(f'tool T : MCP("server", args: ["{"-eyJ-sk-SG." * 100_000}"])') == []
