"""What a broken, hasty or hostile client sends: all of it is answered, and nothing but its end ends the talk."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from threading import Timer
from typing import IO, Any

import pytest

from halo_lang.server.transport import MAX_BODY
from tests.lang.editor_client import HALO, PATIENCE

Message = dict[str, Any]

URI = "untitled:a.halo"
INITIALIZE: Message = {"id": 0, "method": "initialize", "params": {"capabilities": {}}}


class Wire:
    """A server as a process, and its messages one at a time."""

    def __init__(self, command: tuple[str, ...] = HALO) -> None:
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert self.process.stdin
        assert self.process.stdout
        self._patience = Timer(PATIENCE, self.process.kill)
        self._patience.daemon = True
        self._patience.start()
        self._stdin: IO[bytes] = self.process.stdin
        self._stdout: IO[bytes] = self.process.stdout

    def write(self, data: bytes) -> None:
        self._stdin.write(data)
        self._stdin.flush()

    def body(self, body: bytes) -> None:
        self.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))

    def send(self, message: object) -> None:
        self.body(json.dumps({"jsonrpc": "2.0", **message} if isinstance(message, dict) else message).encode())

    def receive(self) -> Message:
        length = 0
        while (line := self._stdout.readline()) != b"\r\n":
            assert line, "the server has ended, or was ended because it did not answer"
            if line.lower().startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        return json.loads(self._stdout.read(length))

    def answer(self) -> Message:
        """The next message that answers something."""
        while "id" not in (message := self.receive()) or "method" in message:
            pass
        return message

    def told(self, method: str) -> Message:
        """The next notification of that kind."""
        while (message := self.receive()).get("method") != method:
            pass
        return message["params"]

    def error(self) -> tuple[object, int]:
        """The id and the code of the next answer, which is an error."""
        answer = self.answer()
        return answer["id"], answer["error"]["code"]

    def open(self, text: str, uri: str = URI, version: int = 1) -> None:
        item = {"uri": uri, "languageId": "halo", "version": version, "text": text}
        self.send({"method": "textDocument/didOpen", "params": {"textDocument": item}})

    def symbols(self, number: int = 9, uri: str = URI) -> None:
        """Ask something that any open document has an answer to."""
        self.send({"id": number, "method": "textDocument/documentSymbol", "params": {"textDocument": {"uri": uri}}})

    def kill(self) -> None:
        """Stop the server, whatever it does."""
        self.process.kill()
        self.end()

    def end(self) -> tuple[int, str]:
        """Close the input; the exit code and what was said on stderr."""
        _, said = self.process.communicate()
        self._patience.cancel()
        return self.process.returncode, said.decode()


@pytest.fixture
def fresh() -> Iterator[Wire]:
    """A server that nobody has spoken to."""
    wire = Wire()
    yield wire
    wire.kill()


@pytest.fixture(scope="module")
def started() -> Iterator[Wire]:
    """A server that has been greeted, for all tests that it survives."""
    wire = Wire()
    wire.send(INITIALIZE)
    wire.answer()
    wire.open("agent A [a/b]\n")
    yield wire
    wire.kill()


@pytest.fixture
def wire(started: Wire) -> Iterator[Wire]:
    """The same, which must still answer after the test."""
    yield started
    started.symbols(99)
    while (answer := started.answer())["id"] != 99:
        pass
    assert [symbol["name"] for symbol in answer["result"]] == ["A"]


NO_MESSAGES = {
    "no JSON": (b"{", -32700),
    "no UTF-8": (b'"\xff"', -32700),
    "nothing": (b"", -32700),
    "brackets without end": (b"[" * 200_000, -32700),
    "a list": (b"[]", -32600),
    "a text": (b'"hello"', -32600),
    "another protocol": (b'{"id": 1, "method": "shutdown"}', -32600),
    "a later version": (b'{"jsonrpc": "3.0", "id": 1, "method": "shutdown"}', -32600),
}


@pytest.mark.parametrize(("body", "code"), NO_MESSAGES.values(), ids=NO_MESSAGES)
def test_what_is_no_message_is_refused(wire: Wire, body: bytes, code: int) -> None:
    wire.body(body)
    assert wire.error()[1] == code


POSITION = {"line": 0, "character": 0}
REFUSED: dict[str, tuple[str, object, int]] = {
    "an unknown method": ("textDocument/dance", {}, -32601),
    "an unknown method without parameters": ("textDocument/dance", None, -32601),
    "a document that is not open": (
        "textDocument/hover",
        {"textDocument": {"uri": "file:///b"}, "position": POSITION},
        -32602,
    ),
    "no parameters": ("textDocument/hover", None, -32602),
    "parameters of another shape": ("textDocument/hover", {"textDocument": 5, "position": []}, -32602),
    "a line that is no number": (
        "textDocument/hover",
        {"textDocument": {"uri": URI}, "position": {"line": "x", "character": {}}},
        -32602,
    ),
    "a command that does not exist": ("workspace/executeCommand", {"command": "dance"}, -32602),
    "a second greeting": ("initialize", {"capabilities": {}}, -32600),
}


@pytest.mark.parametrize(("method", "params", "code"), REFUSED.values(), ids=REFUSED)
def test_a_request_that_cannot_be_answered_is_refused(wire: Wire, method: str, params: object, code: int) -> None:
    wire.send({"id": 7, "method": method, **({} if params is None else {"params": params})})
    assert wire.error() == (7, code)


HARMLESS: dict[str, Message] = {
    "an unknown notification": {"method": "dance/now", "params": {}},
    "a notification of an optional kind": {"method": "$/dance"},
    "a change of a document that is not open": {
        "method": "textDocument/didChange",
        "params": {"textDocument": {"uri": "file:///b", "version": 2}, "contentChanges": [{"text": ""}]},
    },
    "a change without a version": {
        "method": "textDocument/didChange",
        "params": {"textDocument": {"uri": URI}, "contentChanges": []},
    },
    "the end of a document that is not open": {
        "method": "textDocument/didClose",
        "params": {"textDocument": {"uri": "file:///b"}},
    },
    "a saved document": {"method": "textDocument/didSave", "params": {"textDocument": {"uri": URI}}},
    "new settings": {"method": "workspace/didChangeConfiguration", "params": {"settings": {}}},
    "the cancelling of nothing": {"method": "$/cancelRequest", "params": {"id": 1234}},
    "an answer to nothing": {"id": 77, "result": None},
    "a notification with parameters of another shape": {"method": "textDocument/didOpen", "params": [1]},
}


@pytest.mark.parametrize("message", HARMLESS.values(), ids=HARMLESS)
def test_a_notification_that_means_nothing_changes_nothing(wire: Wire, message: Message) -> None:
    wire.send(message)


FAR_AWAY = {"line": 2**31 - 1, "character": 2**31 - 1}
POSITIONED = {
    "textDocument/hover": {},
    "textDocument/completion": {},
    "textDocument/signatureHelp": {},
    "textDocument/definition": {},
    "textDocument/references": {"context": {"includeDeclaration": True}},
    "textDocument/documentHighlight": {},
    "textDocument/prepareRename": {},
}


@pytest.mark.parametrize("method", POSITIONED)
def test_a_position_far_outside_the_text_has_an_answer(wire: Wire, method: str) -> None:
    params = {"textDocument": {"uri": URI}, "position": FAR_AWAY, **POSITIONED[method]}
    wire.send({"id": 5, "method": method, "params": params})
    assert "result" in wire.answer()


@pytest.mark.parametrize("number", [-1, 2**31, 10**30, None, "x", []])
def test_a_position_that_is_none_is_refused(wire: Wire, number: object) -> None:
    position = {"line": number, "character": 0}
    wire.send({"id": 5, "method": "textDocument/hover", "params": {"textDocument": {"uri": URI}, "position": position}})
    assert wire.error() == (5, -32602)


def test_a_header_is_read_in_any_case_and_with_other_fields(wire: Wire) -> None:
    body = b'{"jsonrpc": "2.0", "id": 5, "method": "textDocument/dance"}'
    wire.write(b"content-type: x\r\nCONTENT-LENGTH:%d\r\n\r\n%b" % (len(body), body))
    assert wire.error() == (5, -32601)


def test_a_message_arrives_in_pieces(wire: Wire) -> None:
    body = b'{"jsonrpc": "2.0", "id": 5, "method": "textDocument/dance"}'
    for byte in b"Content-Length: %d\r\n\r\n%b" % (len(body), body):
        wire.write(bytes([byte]))
    assert wire.error() == (5, -32601)


def test_behind_a_message_with_a_wrong_length_the_next_is_found(wire: Wire) -> None:
    wire.write(b'Content-Length: 5\r\n\r\n{"jsonrpc": "2.0"}')
    assert wire.error() == (None, -32700)


BAD_HEADERS = {
    "without a length": b"Content-Type: x\r\n\r\n",
    "with a length that is no number": b"Content-Length: many\r\n\r\n",
    "with a negative length": b"Content-Length: -5\r\n\r\n",
    "without end": b"x" * 10_000,
}


@pytest.mark.parametrize("header", BAD_HEADERS.values(), ids=BAD_HEADERS)
def test_a_broken_header_is_refused(wire: Wire, header: bytes) -> None:
    wire.write(header)
    assert wire.error() == (None, -32600)


def test_a_message_beyond_all_measure_is_read_past(wire: Wire) -> None:
    size = MAX_BODY + 1
    wire.write(b"Content-Length: %d\r\n\r\n" % size)
    for _ in range(0, size - 1, 2**20):
        wire.write(b" " * 2**20)
    wire.write(b" ")
    assert wire.error() == (None, -32600)


def test_nothing_is_answered_before_the_greeting(fresh: Wire) -> None:
    fresh.symbols(3)
    assert fresh.error() == (3, -32002)
    fresh.send(INITIALIZE)
    assert fresh.answer()["result"]["serverInfo"]["name"] == "halo"


def test_a_greeting_that_is_none_can_be_repeated(fresh: Wire) -> None:
    fresh.send({"id": 0, "method": "initialize", "params": {"capabilities": 5}})
    assert fresh.error() == (0, -32602)
    fresh.send(INITIALIZE)
    assert "result" in fresh.answer()


def test_after_shutdown_only_exit_is_left_and_it_ends_well(fresh: Wire) -> None:
    fresh.send(INITIALIZE)
    fresh.send({"id": 1, "method": "shutdown"})
    fresh.symbols(3)
    assert [fresh.answer()["id"] for _ in range(2)] == [0, 1]
    assert fresh.error() == (3, -32600)
    fresh.send({"method": "exit"})
    assert fresh.end()[0] == 0


def test_exit_without_shutdown_is_told_by_the_exit_code(fresh: Wire) -> None:
    fresh.send(INITIALIZE)
    fresh.send({"method": "exit"})
    assert fresh.end()[0] == 1


@pytest.mark.parametrize("said", [b"", b"Content-Length: 500\r\n\r\n{", b"Content-Le"], ids=["", "body", "header"])
def test_the_end_of_the_input_ends_the_server_wherever_it_comes(fresh: Wire, said: bytes) -> None:
    fresh.send(INITIALIZE)
    fresh.write(said)
    assert fresh.end() == (1, "")


def test_the_server_ends_in_the_middle_of_a_long_check(fresh: Wire) -> None:
    fresh.send(INITIALIZE)
    fresh.answer()
    fresh.open(long_program())
    fresh.symbols()
    fresh.send({"method": "exit"})
    assert fresh.end()[0] == 1


def test_a_request_can_be_cancelled_while_its_document_is_checked(fresh: Wire) -> None:
    fresh.send(INITIALIZE)
    fresh.open(long_program())
    fresh.symbols(5)
    fresh.send({"method": "$/cancelRequest", "params": {"id": 5}})
    fresh.answer()
    assert fresh.error() == (5, -32800)


def test_what_needs_no_check_is_answered_while_one_goes_on(fresh: Wire) -> None:
    fresh.send(INITIALIZE)
    fresh.open(long_program())
    fresh.open("agent A [a/b]\n", uri="untitled:short.halo")
    document = {"textDocument": {"uri": "untitled:short.halo"}}
    fresh.send({"id": 5, "method": "textDocument/semanticTokens/full", "params": document})
    fresh.answer()
    order: list[object] = []
    while len(order) < 2:
        message = fresh.receive()
        order += [message["id"]] if message.get("id") == 5 else []
        order += [URI] if message.get("params", {}).get("uri") == URI else []
    assert order == [5, URI]


def test_a_request_is_about_the_text_at_its_time(fresh: Wire) -> None:
    fresh.send(INITIALIZE)
    fresh.open("agent Before [a/b]\n")
    fresh.symbols(5)
    change = {"textDocument": {"uri": URI, "version": 2}, "contentChanges": [{"text": "agent After [a/b]\n"}]}
    fresh.send({"method": "textDocument/didChange", "params": change})
    fresh.symbols(6)
    names = {answer["id"]: answer["result"] for answer in (fresh.answer() for _ in range(3))}
    assert [names[number][0]["name"] for number in (5, 6)] == ["Before", "After"]


BROKEN = """\
from halo_lang.server import Knowledge, serve

def is_priced(model):
    print("noise on stdout")
    raise LookupError("no prices today")

raise SystemExit(serve("0", Knowledge(is_priced=is_priced)))
"""
SPENDING = "policy Cheap: MaxSpend(1)\nagent A [openai/a-b]\n  requires Cheap\npipeline M() -> Result: 'x' |> A.go()\n"


def test_a_failure_of_our_own_is_told_and_survived() -> None:
    wire = Wire((sys.executable, "-c", BROKEN))
    wire.send(INITIALIZE)
    wire.answer()
    wire.open(SPENDING)
    assert "no prices today" in wire.told("window/logMessage")["message"]
    wire.symbols(5)
    assert wire.error() == (5, -32603)
    change = {"textDocument": {"uri": URI, "version": 2}, "contentChanges": [{"text": "agent A [a/b]\n"}]}
    wire.send({"method": "textDocument/didChange", "params": change})
    wire.symbols(6)
    assert wire.answer()["result"][0]["name"] == "A"
    code, said = wire.end()
    assert code == 1
    assert "Traceback" in said
    assert "noise on stdout" in said


def test_without_its_extra_the_server_says_how_to_install_it() -> None:
    code = "import sys; sys.modules['pygls'] = None; from halo_runtime.cli.main import main; sys.exit(main(['lsp']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 2
    assert "pip install 'halo-workbench[lsp]'" in done.stderr
    assert done.stdout == ""


def long_program() -> str:
    """A program that takes long enough to check for other messages to arrive meanwhile."""
    agents = (f"agent A{n} [a/b]\n  system 'You are number {n}'\n" for n in range(3000))
    return "".join(agents) + "pipeline M() -> Result:\n  'x'" + "".join(f"\n    |> A{n}.go()" for n in range(3000))
