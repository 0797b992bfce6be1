"""The example programs with real tools, each as a person runs it: a checkout, documents, a database, a mail server."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.fakes.github_documents import REPO
from tests.fakes.github_server import TOKEN, FakeGitHub

if TYPE_CHECKING:
    from tests.services.postgres import Database

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "real"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLES, tmp_path / "real"))


async def run(folder: Path, program: str, *inputs: str, replies: Any = None, **env: str) -> tuple[int, Any, str]:
    """Exit code, result and what people were told by `halo run`."""
    arguments = [part for text in inputs for part in ("-i", text)]
    if replies is not None:
        (folder / "replies.json").write_text(json.dumps(replies))
        arguments += ["--replies", "replies.json"]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "halo_runtime.cli.main", "run", program, *arguments, "--json",
        cwd=folder, env={**os.environ, **env}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    out, told = await process.communicate()
    return process.returncode or 0, json.loads(out), told.decode()


# --- a review of a repository -----------------------------------------------------------------------------------


def git(folder: Path, *arguments: str) -> None:
    who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def checkout(folder: Path) -> Path:
    """A repository with a branch that leaves white space behind."""
    root = folder / "checkout"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    (root / "sums.py").write_text("def add(a, b):\n    return a - b  # TODO look again\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "Begin")
    git(root, "switch", "-qc", "fix")
    (root / "sums.py").write_text("def add(a, b):\n    return a + b   \n# TODO tests\n")
    git(root, "commit", "-qam", "Add rather than subtract")
    return root


async def test_a_pull_request_is_read_judged_and_reviewed(folder: Path, checkout: Path) -> None:
    verdict = {"event": "REQUEST_CHANGES", "body": "Take the white space out."}
    replies = {
        "Reviewer.review": [
            {"tool_calls": [{"tool": "Checkout_read", "args": {"path": "sums.py"}}]},
            {"reply": verdict},
        ]
    }
    async with FakeGitHub() as server:
        server.add_pull("Add rather than subtract", head="fix")
        code, result, told = await run(
            folder, "repository_review.halo", "number=1", replies=replies, GITHUB_TOKEN=TOKEN,
            GITHUB_API_URL=server.url,
        )  # fmt: skip
        assert (code, result["status"]) == (0, "completed"), told
        data = result["context"]["data"]
        assert "sums.py:2: trailing whitespace." in data["whitespace"]["stdout"]
        assert [todo["line"] for todo in data["todos"]] == [3]
        sent = json.dumps(result["context"]["meta"]["calls"])
        assert "return a + b" in sent
        review = server.requests[-1]
        assert (review.method, review.path) == ("POST", f"/repos/{REPO}/pulls/1/reviews")
        assert review.body == verdict
        assert TOKEN not in json.dumps(result) + told


# --- questions to documents -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "document"),
    [
        ("How much may a hotel cost?", "handbook/travel.md"),
        ("When do I need a doctor's certificate?", "handbook/leave.md"),
        ("Where do we keep passwords?", "handbook/equipment.md"),
    ],
)
async def test_a_question_leads_to_the_document_that_knows(folder: Path, question: str, document: str) -> None:
    replies = {"Assistant.answer": "It is known."}
    code, result, told = await run(folder, "handbook.halo", f"question={question}", replies=replies)
    assert (code, result["status"]) == (0, "completed"), told
    data = result["context"]["data"]
    assert data["library"]["files"] == 3
    assert result["output"] == f"It is known.\n\nFrom {document}:\n\n{data['found'][0]['text']}"
    sent = result["context"]["meta"]["calls"][0]["messages"][-1]["content"]
    assert "\n\nContext (Handbook):\n" in sent
    assert data["found"][0]["text"] in sent


@pytest.mark.local
async def test_the_embedded_model_answers_from_it(folder: Path) -> None:
    code, result, told = await run(folder, "handbook.halo", "question=From which day on do I need a certificate?")
    assert (code, result["status"]) == (0, "completed"), told
    assert result["context"]["data"]["answer"]
    assert "\n\nFrom handbook/leave.md:\n\n# Leave" in result["output"]
    assert result["context"]["meta"]["cost"] == 0


async def test_a_document_that_was_changed_is_taken_in_anew(folder: Path) -> None:
    replies = {"Assistant.answer": "see below"}
    await run(folder, "handbook.halo", "question=hotel", replies=replies)
    travel = folder / "handbook" / "travel.md"
    travel.write_text(travel.read_text().replace("140 euros", "99 euros"))
    _, result, _ = await run(folder, "handbook.halo", "question=How much may a hotel cost?", replies=replies)
    texts = [found["text"] for found in result["context"]["data"]["found"]]
    assert "99 euros" in " ".join(texts)
    assert "140 euros" not in " ".join(texts)


# --- a report by mail -------------------------------------------------------------------------------------------

ORDERS = """create table orders (customer text, total numeric, placed timestamp);
insert into orders values ('Ada', 10.50, '2026-11-29 09:00'), ('Ada', 4.50, '2026-11-29 23:59'),
  ('Grace', 99, '2026-11-29 12:00'), ('Grace', 7, '2026-11-28 12:00')"""


@pytest.mark.postgres
async def test_yesterdays_orders_are_mailed(folder: Path, database: Database) -> None:
    from tests.services.mail import PASSWORD, Post

    database.run(*ORDERS.split(";"), "grant select on orders to clerk")
    replies = {"Writer.report": "Grace and Ada ordered for 114."}
    async with Post(tls=False) as post:
        code, result, told = await run(
            folder, "nightly_report.halo", "day=2026-11-29", "to=team@example.org", replies=replies,
            DATABASE_URL=database.url(), SMTP_HOST=f"127.0.0.1:{post.port}", SMTP_USER="reports",
            SMTP_PASSWORD=PASSWORD,
        )  # fmt: skip
        assert (code, result["status"]) == (0, "completed"), told
        assert result["context"]["data"]["rows"] == [
            {"customer": "Grace", "orders": 1, "total": 99},
            {"customer": "Ada", "orders": 2, "total": 15},
        ]
        (sent,) = post.sent
        assert (sent.sender, sent.recipients) == ("reports@example.org", ("team@example.org",))
        mail = post.parsed()
        assert mail["subject"] == "Orders of 2026-11-29"
        assert mail.get_body().get_content().strip() == "Grace and Ada ordered for 114."
        assert PASSWORD not in json.dumps(result) + told


@pytest.mark.postgres
async def test_a_report_goes_to_nobody_outside(folder: Path, database: Database) -> None:
    from tests.services.mail import PASSWORD, Post

    database.run(*ORDERS.split(";"), "grant select on orders to clerk")
    async with Post(tls=False) as post:
        code, result, _ = await run(
            folder, "nightly_report.halo", "day=2026-11-29", "to=eve@elsewhere.test", replies={"*": "x"},
            DATABASE_URL=database.url(), SMTP_HOST=f"127.0.0.1:{post.port}", SMTP_USER="reports",
            SMTP_PASSWORD=PASSWORD,
        )  # fmt: skip
        assert (code, result["status"], post.sent) == (1, "failed", [])
        assert "allowRecipients" in result["error"]["message"]
