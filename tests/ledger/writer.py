"""A process that logs until it is killed or has logged enough, and prints the id of each event it was promised.

python writer.py LEDGER AGENT COUNT
"""

from __future__ import annotations

import sys

from halo_runtime.ledger import Ledger


def main(path: str, agent: str, count: int) -> None:
    with Ledger.open(path) as ledger:
        uses: list[str] = []
        for number in range(count):
            logged = ledger.log("remember", summary=f"step {number}", agent=agent, session="s1", uses=uses)
            uses = [logged.event.id]
            print(logged.event.id, logged.hash, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
