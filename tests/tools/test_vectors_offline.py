"""The embedding model that works offline: how well it ranks, and that it leaves the process as it was."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from halo_runtime.tools import tool_factory
from halo_runtime.tools.base import ToolConfig
from halo_runtime.tools.vectors.embedders import OfflineEmbedder

RANKING = Path(__file__).with_name("vector_ranking.json")
RECALL_AT_5, MEAN_RECIPROCAL_RANK = 0.85, 0.68
"""Floors; measured were 0.89 and 0.72, and 0.31 and 0.24 for hashed n-grams of letters."""


async def test_questions_find_their_answers_in_other_words(tmp_path: Path) -> None:
    labelled: Any = json.loads(RANKING.read_text("utf-8"))
    texts, queries = labelled["texts"], labelled["queries"]
    assert len(texts) >= 60
    assert len(queries) >= 40
    tool = tool_factory("VectorStore")(ToolConfig("Docs", "VectorStore", {}, tmp_path))
    await tool.call("addMany", {"items": [{"id": name, "text": text} for name, text in texts.items()]})
    ranks: list[int] = []
    for query, wanted in queries.items():
        found = [one["id"] for one in await tool.call("search", {"query": query, "k": 100})]
        ranks.append(found.index(wanted) + 1)
    await tool.close()
    assert sum(rank <= 5 for rank in ranks) / len(ranks) >= RECALL_AT_5
    assert sum(1 / rank for rank in ranks) / len(ranks) >= MEAN_RECIPROCAL_RANK


async def test_a_text_has_the_same_vector_whatever_stands_beside_it() -> None:
    embedder = OfflineEmbedder("Docs")
    texts = ["Refunds take five days.", "", "closed " * 3000, "half a pair: \ud83d", "日本語のテキスト"]
    together = await embedder.embed(texts, "entry")
    alone = [(await embedder.embed([text], "query"))[0] for text in texts]
    again = await embedder.embed(texts * 30, "entry")
    embedder.close()
    assert together.shape == (5, 256)
    assert together.dtype == "float32"
    assert [row.tolist() for row in together] == [pytest.approx(row.tolist(), abs=1e-6) for row in alone]
    assert (again[:5] == again[-5:]).all()
    assert not together[1].any()


QUIET = """
import logging, socket, sys
def refused(*_): raise AssertionError("the network was asked")
socket.socket.connect = refused
socket.getaddrinfo = refused
import asyncio
from pathlib import Path
from halo_runtime.tools import tool_factory
from halo_runtime.tools.base import ToolConfig
tool = tool_factory("VectorStore")(ToolConfig("Docs", "VectorStore", {"path": ":memory:"}, Path()))
assert not {"numpy", "wordllama"} & sys.modules.keys(), "imported before it was used"
async def main():
    await tool.call("add", {"text": "a"})
    print(len(await tool.call("search", {"query": "a"})))
    await tool.close()
asyncio.run(main())
assert (logging.getLogger().level, logging.getLogger().handlers) == (logging.WARNING, [])
"""


def test_using_it_needs_no_network_and_leaves_logging_alone_and_making_a_store_loads_nothing() -> None:
    done = subprocess.run([sys.executable, "-W", "error", "-c", QUIET], capture_output=True, text=True)
    assert (done.stdout, done.stderr, done.returncode) == ("1\n", "", 0)
