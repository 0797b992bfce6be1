"""What goes to stdout and stderr: the output alone and exact on the one, blocks for people on the other.

Everything is written through `emit`, so a closed pipe is quiet, a full disk is said once, and a narrow encoding is no
crash.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from halo_lang.excerpt import excerpt, visible
from halo_lang.source import Source, Span
from halo_runtime.cli.usage import UsageError
from halo_runtime.errors import HaloError, Place
from halo_runtime.json_types import Json
from halo_runtime.values import indented

if TYPE_CHECKING:
    from decimal import Decimal

_STYLES = {"error": "1;31", "warning": "1;33", "info": "1;36", "dim": "2", "good": "32", "strong": "1"}


def prepare_streams() -> None:
    """Make stdout and stderr take any text: what the locale cannot say is written as an escape."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def emit(stream: TextIO | None, text: str) -> bool:
    """Write and flush. Quiet when the reader has gone or the stream was closed from the start: then False.

    Raises OSError where stdout cannot be written: the output is lost. Where stderr cannot, there is nobody to tell.
    """
    if stream is None:
        return False
    with _writing(stream):
        stream.write(text)
        stream.flush()
        return True
    return False


def emit_bytes(stream: TextIO | None, data: bytes) -> None:
    """Write bytes past the stream's encoding, else as `emit` does."""
    if stream is None:
        return
    with _writing(stream):
        stream.flush()
        stream.buffer.write(data)
        stream.buffer.flush()


def say(text: str) -> None:
    """A line or block for people, on stderr."""
    emit(sys.stderr, text + "\n")


def tell(text: str) -> None:
    """A line or block that is the command's product, on stdout."""
    emit(sys.stdout, text + "\n")


def tell_json(document: Json) -> None:
    """One JSON document on stdout."""
    tell(json_text(document, sys.stdout))


def json_text(document: Json, stream: TextIO | None) -> str:
    """A document on one line; in ASCII where the stream's encoding has no more.

    What a terminal would act on stands as JSON's own escapes, so that it is the same document and safe to look at.
    """
    unicode = (getattr(stream, "encoding", None) or "utf-8").lower().replace("-", "").startswith("utf")
    text = json.dumps(document, ensure_ascii=not unicode)
    if text.isprintable():
        return text
    return "".join(one if visible(one) == one else json.dumps(one)[1:-1] for one in text)


def tell_output(value: Json) -> None:
    """A run's output: text as it is, everything else as indented JSON; on a terminal without obeying it."""
    text = value if isinstance(value, str) else indented(value)
    if is_terminal(sys.stdout):
        text = visible(text, keep="\t\n")
    emit(sys.stdout, text if text.endswith("\n") else text + "\n")


def error_block(error: HaloError, source: Source | None = None) -> str:
    """What happened, where (with the source line when `source` is the file), and what to do."""
    kind = "error" if isinstance(error, UsageError) else f"error {type(error).__name__}"
    message = visible(error.message, keep="\t\n")
    lines = [f"{paint('error', kind, sys.stderr)}: {message}"]
    place = error.place
    if place is not None:
        lines[0] = f"{visible(place.file)}:{place.line}:{place.column}: {lines[0]}"
        shown = [] if source is None else excerpt(source, _span(place, source))
        notes = [] if place.stage in "\n".join(shown) else [f"in {visible(place.stage)}"]
        lines += [*shown, *(f"  = {note}" for note in notes)]
    if error.attempt > 1:
        lines.append(f"  = attempt {error.attempt}")
    if error.hint:
        lines.append(f"  = hint: {visible(error.hint)}")
    return "\n".join(lines)


def paint(style: str, text: str, stream: TextIO | None) -> str:
    """`text` in a style (error warning info dim good strong) where `stream` is to have colours."""
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if _is_coloured(stream) else text


def choose_colours(when: str) -> None:
    """What `--color` says: `always`, `never`, or `auto`: on terminals, unless NO_COLOR or TERM=dumb is set."""
    global _colours
    _colours = when


_colours = "auto"


def _is_coloured(stream: TextIO | None) -> bool:
    if _colours != "auto":
        return _colours == "always"
    return is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person sees (or types) what goes through the stream."""
    return stream is not None and not stream.closed and stream.isatty()


def is_screen(stream: TextIO | None) -> bool:
    """Whether it is a terminal that can clear itself and move its cursor."""
    return is_terminal(stream) and os.environ.get("TERM", "dumb") != "dumb"


def plural(count: int, noun: str) -> str:
    """`1 error`, `2 errors`, `3 entries`."""
    if count == 1:
        return f"{count} {noun}"
    return f"{count} {noun[:-1]}ies" if noun.endswith("ry") else f"{count} {noun}s"


def money(cost: float | Decimal | None) -> str:
    """An amount in USD with enough places to be none of `$0.00`; `unknown` for None."""
    if cost is None:
        return "unknown"
    return f"${cost:.4f}" if not cost or cost >= 0.0001 else f"${float(f'{cost:.1e}'):.10f}".rstrip("0")


def _span(place: Place, source: Source) -> Span:
    """From a place to the end of the word there, without the colon of a parameter; places carry no end."""
    line = source.line(place.line) if place.line <= len(source.line_starts) else ""
    start = source.line_starts[min(place.line, len(source.line_starts)) - 1] + place.column - 1
    rest = line[place.column - 1 :]
    word = place.stage if place.stage and rest.startswith(place.stage) else rest.partition(" ")[0].removesuffix(":")
    return Span(start, start + max(1, len(word)))


@contextmanager
def _writing(stream: TextIO) -> Generator[None]:
    try:
        yield
    except OSError as failure:
        discard_from_now_on(stream)
        if stream is sys.stdout and not isinstance(failure, BrokenPipeError):
            raise


def discard_from_now_on(stream: TextIO) -> None:
    """Point the stream at nothing, or the interpreter complains at exit about what it could not write."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, stream.fileno())
    except (OSError, ValueError):
        pass  # a stream without a file descriptor has no pipe to be quiet about
    finally:
        os.close(nowhere)
