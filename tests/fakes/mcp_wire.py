"""A server over stdio that speaks the protocol by hand, as of 2025-11-25, and misbehaves to order.

It is a program of its own without any package, so it starts in no time. MCP_LOG names a file that gets each message it
is sent, as a line of JSON. Its first argument is what it does wrong, the second what its tool says of itself.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

MODE = sys.argv[1] if len(sys.argv) > 1 else "plain"
DOC = sys.argv[2] if len(sys.argv) > 2 else "Give back a text."
SLOW = r"^(a+)+$"
"""A pattern that a backtracking matcher does not come to an end with."""
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}}
SCHEMAS: dict[str, dict[str, Any]] = {
    "pattern": {"type": "object", "properties": {"text": {"type": "string", "pattern": SLOW}}},
    "broken-schema": {"type": "object", "properties": {"text": {"type": 5}}},
}


def log(message: Any) -> None:
    if "MCP_LOG" in os.environ:
        with Path(os.environ["MCP_LOG"]).open("a") as file:
            file.write(json.dumps(message) + "\n")


def send(document: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **document}) + "\n")
    sys.stdout.flush()


def receive() -> dict[str, Any] | None:
    line = sys.stdin.readline()
    if not line:
        return None
    message = json.loads(line)
    log(message)
    return message


def tools(cursor: str | None) -> dict[str, Any]:
    schema = SCHEMAS.get(MODE, TEXT)
    names = ["echo", "echo.it", "echo-it"] if MODE == "clash" else ["echo"]
    offered = [{"name": name, "description": DOC, "inputSchema": schema} for name in names]
    if MODE == "pattern":
        offered[0]["outputSchema"] = schema
    if MODE == "endless":
        return {"tools": offered, "nextCursor": f"{int(cursor or 0) + 1}"}
    if MODE == "no-schema":
        return {"tools": [{"name": "echo"}]}
    return {"tools": offered}


def ask_back(method: str, params: dict[str, Any]) -> Any:
    """What the client answers to a request of the server."""
    send({"id": method, "method": method, "params": params})
    answer = receive() or {}
    return answer.get("error", answer.get("result"))


def call(number: Any, params: dict[str, Any]) -> None:
    text = (params.get("arguments") or {}).get("text", "")
    result: dict[str, Any] = {"content": [{"type": "text", "text": text}]}
    if MODE == "silent":
        return
    if MODE == "dies":
        sys.stderr.write(f"no room left on the device\nkey {os.environ.get('KEY')}\n")
        sys.stderr.flush()
        os._exit(7)
    if MODE == "huge":
        for _ in range(100):
            sys.stdout.write("x" * 1_000_000)
    if MODE == "refuses":
        send({"id": number, "error": {"code": -32602, "message": f"no such thing: {os.environ.get('KEY')}"}})
        return
    if MODE == "asks":
        message = {"role": "user", "content": {"type": "text", "text": "who are you?"}}
        sampled = ask_back("sampling/createMessage", {"messages": [message], "maxTokens": 5})
        elicited = ask_back("elicitation/create", {"message": "password?", "requestedSchema": TEXT})
        listed = ask_back("roots/list", {})
        ping = ask_back("ping", {})
        result["structuredContent"] = {"sampled": sampled, "elicited": elicited, "listed": listed, "ping": ping}
    if MODE == "pattern":
        result["structuredContent"] = {"text": "a" * 40 + "!"}
    if MODE == "nonsense":
        result = {"content": "no list"}
    send({"id": number, "result": result})


def answer(message: dict[str, Any]) -> None:
    number, method, params = message.get("id"), message.get("method"), message.get("params") or {}
    if MODE == "garbage":
        sys.stdout.write('npm WARN deprecated\n{"not": "a message"}\n\n[1, 2\n')
    if MODE == "garbage-only":
        sys.stdout.write("Listening on port 3000\n")
        sys.stdout.flush()
    elif method == "initialize" and MODE != "hang-initialize":
        info = {"name": "wire", "version": "1"}
        capabilities = {"tools": {"listChanged": True}}
        send(
            {
                "id": number,
                "result": {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info},
            }
        )
    elif method == "tools/list" and MODE != "hang-list":
        send({"id": number, "result": tools(params.get("cursor"))})
    elif method == "tools/call":
        call(number, params)
    elif number is not None and method not in ("initialize", "tools/list"):
        send({"id": number, "error": {"code": -32601, "message": "Method not found"}})


def main() -> None:
    if MODE == "dies-at-once":
        sys.stderr.write("cannot find the configuration\n")
        sys.exit(2)
    if MODE == "silent":
        log({"method": "(started)", "process": os.getpid()})
    if MODE == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child = subprocess.Popen(["sleep", "300"], start_new_session=True)
        log({"processes": [os.getpid(), child.pid]})
    while (message := receive()) is not None:
        answer(message)
    while MODE == "stubborn":
        time.sleep(60)


if __name__ == "__main__":
    main()
