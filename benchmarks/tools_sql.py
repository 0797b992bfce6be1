"""What `PostgreSQL.query` costs beside psycopg alone, on one server in one run.

One row by its key, a hundred rows, and statements that are new each time, so that each is parsed and looked at anew.
psycopg sends what Halo sends over a connection of its own, and reads rows as dicts. Both take turns.

    python benchmarks/tools_sql.py [--calls 1000] [--rounds 7]

Starts a PostgreSQL server of its own (Debian's package `postgresql`). Writes results/tools_sql.json and prints a table.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import dict_row
from record import machine, save, table, versions

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from halo_runtime.tools import tool_factory
from halo_runtime.tools.base import ToolConfig
from tests.services.postgres import Database, postgres

RESULTS = Path(__file__).parent / "results" / "tools_sql.json"
AIM = 300
KINDS = ("passed_us", "worked_us")
TABLE = "create table items as select n as id, 'item ' || n as name, n * 1.5 as price from generate_series(1, 1000) n"

Call = Callable[[str, list[Any]], Awaitable[Any]]
CASES: dict[str, Callable[[int], tuple[str, list[Any]]]] = {
    "one row": lambda n: ("select id, name from items where id = %s", [n % 1000 + 1]),
    "100 rows": lambda n: ("select id, name from items where id <= %s", [100]),
    "new statements": lambda n: (f"select id, name as n{n} from items where id = %s", [n % 1000 + 1]),
}


async def measure(call: Call, case: str, calls: int, start: int) -> tuple[float, float]:
    """Microseconds a call: the time that passes, the median of `calls`, and this process's own."""
    took: list[float] = []
    worked = time.process_time()
    for number in range(start, start + calls):
        sql, params = CASES[case](number)
        began = time.perf_counter()
        await call(sql, params)
        took.append(time.perf_counter() - began)
    return statistics.median(took) * 1e6, (time.process_time() - worked) / calls * 1e6


async def compare(database: Database, calls: int, rounds: int) -> dict[str, dict[str, Any]]:
    connection = await psycopg.AsyncConnection.connect(database.url(), autocommit=True)
    cursor = connection.cursor(row_factory=dict_row)
    tool = tool_factory("PostgreSQL")(ToolConfig("DB", "PostgreSQL", {"url": database.url()}, Path()))

    async def bare(sql: str, params: list[Any]) -> Any:
        return await (await cursor.execute(sql.encode(), params)).fetchall()

    async def halo(sql: str, params: list[Any]) -> Any:
        return await tool.call("query", {"sql": sql, "params": params})

    assert await bare(*CASES["100 rows"](0)) == await halo(*CASES["100 rows"](0))
    found: dict[str, dict[str, list[tuple[float, float]]]] = {case: {"psycopg": [], "halo": []} for case in CASES}
    ways: dict[str, Call] = {"psycopg": bare, "halo": halo}
    for number in range(rounds):
        for case in CASES:
            for way in list(ways)[:: 1 if number % 2 else -1]:
                found[case][way].append(await measure(ways[way], case, calls, number * calls))
    await connection.close()
    await tool.close()
    return {case: summed(times) for case, times in found.items()}


def summed(rounds: dict[str, list[tuple[float, float]]]) -> dict[str, Any]:
    """The figures of each way, and how much more Halo takes. On a busy machine the best rounds tell most."""
    found: dict[str, dict[str, Any]] = {way: {} for way in (*rounds, "more")}
    for place, kind in enumerate(KINDS):
        for way, times in rounds.items():
            values = [one[place] for one in times]
            found[way][kind] = {"median": round(statistics.median(values)), "best": round(min(values))}
        found["more"][kind] = {
            figure: found["halo"][kind][figure] - found["psycopg"][kind][figure] for figure in ("median", "best")
        }
    return found


def _shown(figures: dict[str, int]) -> str:
    return f"{figures['median']} ({figures['best']}) µs"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    with postgres() as server, server.database() as database:
        database.run(TABLE, "alter table items add primary key (id)", "grant select on items to clerk")
        (version,) = database.run("show server_version")[0]
        found = asyncio.run(compare(database, options.calls, options.rounds))
    rows = [
        [case, *(_shown(figures[way][kind]) for kind in KINDS for way in ("psycopg", "halo", "more"))]
        for case, figures in found.items()
    ]
    print(table(("median (best) of a query", "psycopg", "Halo", "more", "psycopg works", "Halo works", "more"), rows))
    print(f"the aim: at most {AIM} µs more")
    report = {**machine(), "versions": versions("psycopg", "postgast"), "server": f"PostgreSQL {version.split()[0]}"}
    save(RESULTS, {**report, "calls": options.calls, "rounds": options.rounds, "aim_us": AIM, "cases": found})


if __name__ == "__main__":
    main()
