"""What a call of a model costs beside the service's own time: Halo and the openai SDK, on one server in one run.

- one call after another: the provider alone, a whole run of Halo a call, and AsyncOpenAI, whole and streamed;
- 1,000 items of `each` with 500 at once against a server that takes 10 ms, beside SDK, httpx and httpcore;
- the memory of 1,000 to 100,000 items.

    python benchmarks/calls.py [--calls 500] [--rounds 5] [--items 1000,10000,100000]

The server is a process of its own that answers with canned bytes, so it is not what is measured. Clients take turns, in
another order each round. Writes results/calls.json and prints tables.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from record import machine, save, table, versions

RESULTS = Path(__file__).parent / "results" / "calls.json"
MODEL = "gpt-4.1-mini"
MESSAGES = [{"role": "system", "content": "You are brief."}, {"role": "user", "content": "Say hello."}]
LATENCY, ITEMS, WIDTH = 0.01, 1000, 500

PROGRAM = f"""\
agent Bot [openai/{MODEL}]
  system "You are brief."
pipeline Main(items: Array) -> Any:
  items |* each(item in items, concurrency: {{width}}) => Bot.say("Say hello.")
"""

# --- the server -------------------------------------------------------------------------------------------------------


def serve(delay: float) -> None:
    """Answer every request after `delay` seconds, whole or streamed as it asks; the port goes to stdout."""
    whole, streamed = _whole(), _streamed()

    class Connection(asyncio.Protocol):
        def connection_made(self, transport: Any) -> None:
            self.transport = transport
            self.received = b""

        def data_received(self, data: bytes) -> None:
            self.received += data
            while True:
                head, found, rest = self.received.partition(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
                if not found or len(rest) < length:
                    return
                body, self.received = rest[:length], rest[length:]
                answer = streamed if b'"stream":true' in body.replace(b" ", b"") else whole
                if delay:
                    asyncio.get_running_loop().call_later(delay, self.transport.write, answer)
                else:
                    self.transport.write(answer)

    async def main() -> None:
        server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", 0, backlog=2048)
        print(server.sockets[0].getsockname()[1], flush=True)
        await server.serve_forever()

    asyncio.run(main())


def _whole() -> bytes:
    message = {"role": "assistant", "content": "Hello there.", "refusal": None}
    choice = {"index": 0, "finish_reason": "stop", "logprobs": None, "message": message}
    body = json.dumps(_named("chat.completion") | {"choices": [choice], "usage": _usage()}).encode()
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    return head % len(body) + body


def _streamed() -> bytes:
    named = _named("chat.completion.chunk")
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": text} for text in ("Hello", " there", ".")]
    choices = [[{"index": 0, "delta": delta, "finish_reason": None}] for delta in deltas]
    chunks = [named | {"choices": choice} for choice in choices]
    chunks += [named | {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}]
    chunks += [named | {"choices": [], "usage": _usage()}]
    events = [*(json.dumps(chunk) for chunk in chunks), "[DONE]"]
    parts = [f"data: {event}\n\n".encode() for event in events]
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    return head + b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def _named(kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-x", "object": kind, "created": 1764000000, "model": MODEL}


def _usage() -> dict[str, int]:
    return {"prompt_tokens": 19, "completion_tokens": 3, "total_tokens": 22}


@contextmanager
def server(delay: float) -> Any:
    """The address of a server process."""
    process = subprocess.Popen([sys.executable, __file__, "--serve", str(delay)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}/v1"
    finally:
        process.kill()
        process.wait()


# --- clients ----------------------------------------------------------------------------------------------------------

Call = Callable[[], Awaitable[Any]]
Use = Callable[[Call], Awaitable[Any]]


async def halo_provider(url: str, use: Use, *, streamed: bool) -> Any:
    from halo_runtime.models.base import Message, ModelRequest
    from halo_runtime.models.openai import open_openai

    provider = open_openai({"OPENAI_BASE_URL": url})
    messages = tuple(Message(message["role"], message["content"]) for message in MESSAGES)  # type: ignore[arg-type]
    request = ModelRequest(f"openai/{MODEL}", "Bot", "say", messages)
    pieces: list[str] = []

    async def call() -> None:
        reply = await provider.complete(request, pieces.append if streamed else None)
        assert reply.text == "Hello there."

    try:
        return await use(call)
    finally:
        await provider.close()


async def openai_sdk(url: str, use: Use, *, streamed: bool) -> Any:
    from openai import AsyncOpenAI

    async with AsyncOpenAI(api_key="none", base_url=url, max_retries=0, timeout=120) as client:
        create: Any = client.chat.completions.create

        async def whole() -> None:
            completion = await create(model=MODEL, messages=MESSAGES)
            assert completion.choices[0].message.content == "Hello there."

        async def stream() -> None:
            options = {"include_usage": True}
            chunks = await create(model=MODEL, messages=MESSAGES, stream=True, stream_options=options)
            texts = [chunk.choices[0].delta.content or "" async for chunk in chunks if chunk.choices]
            assert "".join(texts) == "Hello there."

        return await use(stream if streamed else whole)


async def bare_httpx(url: str, use: Use, *, streamed: bool) -> Any:
    import httpx

    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(limits=limits, timeout=120) as client:

        async def call() -> None:
            answer = await client.post(f"{url}/chat/completions", json={"model": MODEL, "messages": MESSAGES})
            assert answer.json()["choices"][0]["message"]["content"] == "Hello there."

        return await use(call)


async def bare_connections(url: str, use: Use, *, streamed: bool) -> Any:
    """Halo's connections alone: a request made beforehand, its answer read and parsed."""
    from halo_runtime.models.connections import Connections
    from halo_runtime.models.wire import STANDING, to_send

    connections = Connections(trusts_environment=False)
    body = json.dumps({"model": MODEL, "messages": MESSAGES}).encode()

    async def call() -> None:
        request = to_send("POST", f"{url}/chat/completions", STANDING, body, {})
        async with connections.exchange(request) as response:
            document = json.loads(b"".join([part async for part in response.aiter_stream()]))
        assert document["choices"][0]["message"]["content"] == "Hello there."

    try:
        return await use(call)
    finally:
        await connections.close()


CLIENTS: dict[str, Callable[..., Awaitable[Any]]] = {
    "halo": halo_provider, "openai": openai_sdk, "httpx": bare_httpx, "connections": bare_connections,
}  # fmt: skip


async def halo_run(url: str, items: int, width: int) -> tuple[float, float]:
    """Seconds and processor seconds of a run with one call an item, hash chain and figures included."""
    from halo_lang import check, parse
    from halo_runtime import Runtime

    runtime, program = Runtime(env={"OPENAI_BASE_URL": url}), check(parse(PROGRAM.format(width=width)))
    (await runtime.run(program, "Main", {"items": [0]})).raise_for_status()
    gc.collect()
    clock, cpu = time.perf_counter(), time.process_time()
    result = await runtime.run(program, "Main", {"items": list(range(items))})
    taken = time.perf_counter() - clock, time.process_time() - cpu
    assert result.raise_for_status().output == ["Hello there."] * items
    await runtime.close()
    return taken


# --- what is measured -------------------------------------------------------------------------------------------------


def one_by_one(calls: int) -> Use:
    """Microseconds and processor microseconds of one call after another."""

    async def use(call: Call) -> tuple[float, float]:
        for _ in range(10):
            await call()
        gc.collect()
        clock, cpu = time.perf_counter(), time.process_time()
        for _ in range(calls):
            await call()
        return (time.perf_counter() - clock) / calls * 1e6, (time.process_time() - cpu) / calls * 1e6

    return use


async def at_once(call: Call) -> tuple[float, float]:
    """Seconds and processor seconds of ITEMS calls, WIDTH at a time."""
    places = asyncio.Semaphore(WIDTH)

    async def one() -> None:
        async with places:
            await call()

    gc.collect()
    clock, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(one() for _ in range(ITEMS)))
    return time.perf_counter() - clock, time.process_time() - cpu


def measure_overhead(calls: int, rounds: int) -> list[dict[str, Any]]:
    """One call after another, each client in turns; medians over the rounds."""
    ways: list[tuple[str, bool]] = [(name, streamed) for streamed in (False, True) for name in ("halo", "openai")]
    ways += [("httpx", False), ("connections", False), ("halo run", True)]
    found: dict[tuple[str, bool], list[tuple[float, float]]] = {way: [] for way in ways}
    with server(0) as url:
        for number in range(rounds):
            for name, streamed in ways[number % len(ways) :] + ways[: number % len(ways)]:
                if name == "halo run":
                    clock, cpu = asyncio.run(halo_run(url, calls, 1))
                    taken = clock / calls * 1e6, cpu / calls * 1e6
                else:
                    taken = asyncio.run(CLIENTS[name](url, one_by_one(calls), streamed=streamed))
                found[name, streamed].append(taken)
    return [{"client": name, "streamed": streamed} | _medians(found[name, streamed], "us") for name, streamed in ways]


def measure_breadth(rounds: int) -> list[dict[str, Any]]:
    """ITEMS calls, WIDTH at once, of LATENCY each; medians over the rounds."""
    names = ["halo run", *CLIENTS]
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    with server(LATENCY) as url:
        for number in range(rounds):
            for name in names[number % len(names) :] + names[: number % len(names)]:
                if name == "halo run":
                    found[name].append(asyncio.run(halo_run(url, ITEMS, WIDTH)))
                else:
                    found[name].append(asyncio.run(CLIENTS[name](url, at_once, streamed=name == "halo")))
    return [{"client": name} | _medians(found[name], "s") for name in names]


def measure_memory(sizes: list[int]) -> list[dict[str, Any]]:
    """Peak memory of a run of so many items, each in a process of its own."""
    found: list[dict[str, Any]] = []
    with server(0) as url:
        for items in sizes:
            command = [sys.executable, __file__, "--memory", str(items), "--url", url]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found.append({"items": items} | json.loads(done.stdout))
    return found


def memory_of(url: str, items: int) -> None:
    """Print the memory of one run: at its peak, and of its result alone."""
    import resource

    from halo_lang import check, parse
    from halo_runtime import Runtime

    async def main() -> dict[str, Any]:
        runtime, program = Runtime(env={"OPENAI_BASE_URL": url}), check(parse(PROGRAM.format(width=50)))
        await runtime.run(program, "Main", {"items": list(range(100))})
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        result = await runtime.run(program, "Main", {"items": list(range(items))})
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        gc.collect()
        kept = _resident()
        del result
        runtime_kept = _resident_after()
        await runtime.close()
        return {"before_mb": _mb(before), "peak_mb": _mb(peak), "with_result_mb": kept, "without_mb": runtime_kept}

    print(json.dumps(asyncio.run(main())))


def _resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return round(pages * 4096 / 2**20, 1)


def _resident_after() -> float:
    gc.collect()
    return _resident()


def _mb(kilobytes: int) -> float:
    return round(kilobytes / 1024, 1)


def _medians(taken: list[tuple[float, float]], unit: str) -> dict[str, float]:
    digits = 0 if unit == "us" else 3
    clocks, cpus = [one[0] for one in taken], [one[1] for one in taken]
    return {
        f"median_{unit}": round(statistics.median(clocks), digits),
        f"min_{unit}": round(min(clocks), digits),
        f"max_{unit}": round(max(clocks), digits),
        f"cpu_median_{unit}": round(statistics.median(cpus), digits),
        f"cpu_min_{unit}": round(min(cpus), digits),
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--calls", type=int, default=500)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--items", default="1000,10000,100000")
    options.add_argument("--serve", type=float, help=argparse.SUPPRESS)
    options.add_argument("--memory", type=int, help=argparse.SUPPRESS)
    options.add_argument("--url", help=argparse.SUPPRESS)
    arguments = options.parse_args()
    if arguments.serve is not None:
        serve(arguments.serve)
        return
    if arguments.memory is not None:
        memory_of(arguments.url, arguments.memory)
        return
    overhead = measure_overhead(arguments.calls, arguments.rounds)
    breadth = measure_breadth(arguments.rounds)
    memory = measure_memory([int(size) for size in arguments.items.split(",")])
    report = {
        "benchmark": "calls",
        **machine(),
        "versions": versions("openai", "httpx", "httpcore"),
        "one_by_one": overhead,
        "at_once": {
            "items": ITEMS,
            "width": WIDTH,
            "latency_s": LATENCY,
            "waiting_s": ITEMS / WIDTH * LATENCY,
            "clients": breadth,
        },
        "memory": memory,
    }
    save(RESULTS, report)
    show(report)


def show(report: dict[str, Any]) -> None:
    """Print the report as tables."""
    rows = [
        [f"{row['client']}, {'streamed' if row['streamed'] else 'whole'}", *_shown(row, "us", "µs", 0)]
        for row in report["one_by_one"]
    ]
    print(table(("one call", "median", "processor, least"), rows), end="\n\n")
    rows = [[row["client"], *_shown(row, "s", "s", 2)] for row in report["at_once"]["clients"]]
    print(table((f"{ITEMS} calls, {WIDTH} at once", "median", "processor, least"), rows), end="\n\n")
    names = ("peak_mb", "with_result_mb", "without_mb")
    rows = [[f"{row['items']:,}", *(f"{row[name]} MB" for name in names)] for row in report["memory"]]
    print(table(("items", "peak", "with its result", "after it"), rows))


def _shown(row: dict[str, Any], unit: str, sign: str, digits: int) -> list[str]:
    return [f"{row[name]:.{digits}f} {sign}" for name in (f"median_{unit}", f"cpu_min_{unit}")]


if __name__ == "__main__":
    main()
