"""`halo check --watch`: waits for changes of files, checks again and tells what came of it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TextIO, TypeAlias

from halo_lang.excerpt import visible
from halo_runtime.cli.findings import Report, text
from halo_runtime.cli.output import emit, is_screen, paint, plural, say
from halo_runtime.cli.sources import program_files
from halo_runtime.cli.usage import UsageError
from halo_runtime.cli.watched import News, Programs

_QUIET_MS = 100
_GROUPED_MS = 300
_LOOK_AGAIN = 20
"""Quiet times after which files are looked at all the same, since network file systems tell of no changes."""

_CLEAR = "\x1b[H\x1b[2J\x1b[3J"

Teller: TypeAlias = Callable[[News], bool]
"""Tells the news; False when nobody reads them any more."""


def watch(paths: Sequence[str], form: Callable[[Sequence[Report], TextIO | None], str] | None) -> None:
    """Check, and again at each change, until the reader of stdout has gone. KeyboardInterrupt at Ctrl-C.

    Without a `form` it is for people: on a terminal the whole state on a cleared screen, else what changed. UsageError
    for what cannot be read at the start; later on it is waited for.
    """
    program_files(paths)
    programs = Programs(paths)
    tell = _teller(form)
    reading = tell(programs.look())
    while reading:
        reading = _until_folders_change(programs, tell)


def _until_folders_change(programs: Programs, tell: Teller) -> bool:
    """Whether to go on with the folders that there are then."""
    folders = programs.folders()
    for touched in _changes(folders, programs.concern):
        news = programs.look(touched)
        if news.changed and not tell(news):
            return False
        if programs.folders() != folders:
            break
    return True


def _changes(folders: Collection[str], concern: Callable[[str], bool]) -> Iterator[set[str]]:
    """The places of changes; none of them when it is time to look again, first as soon as all folders are watched.

    Ends when a folder is gone before it can be watched.
    """
    import watchfiles

    batches = watchfiles.watch(
        *folders,
        watch_filter=lambda _, place: concern(place),
        debounce=_GROUPED_MS,
        rust_timeout=_QUIET_MS,
        yield_on_timeout=True,
        recursive=False,
        ignore_permission_denied=True,
    )
    try:
        for number, changes in enumerate(batches):
            if changes or number % _LOOK_AGAIN == 0:
                yield {place for _, place in changes}
    except FileNotFoundError:
        return
    except OSError as failure:  # the system's limits of what can be watched, above all
        raise UsageError(f"cannot watch: {failure.strerror or failure}") from None


def _teller(form: Callable[[Sequence[Report], TextIO | None], str] | None) -> Teller:
    if form is None and is_screen(sys.stdout):
        return _redraw
    say("watching; Ctrl-C ends it")
    if form is None:
        return _tell_changes

    def tell(news: News) -> bool:
        _tell_troubles(news)
        return emit(sys.stdout, form(news.reports, sys.stdout))

    return tell


def _redraw(news: News) -> bool:
    waiting = "".join(f"{paint('error', _waited_for(trouble), sys.stdout)}\n" for trouble in news.troubles)
    closing = paint("dim", f"watching {plural(len(news.reports), 'file')}; Ctrl-C ends it", sys.stdout)
    return emit(sys.stdout, f"{_CLEAR}{text(news.reports, sys.stdout)}\n{waiting}\n{closing}\n")


def _tell_changes(news: News) -> bool:
    _tell_troubles(news)
    return emit(sys.stdout, text(news.fresh, sys.stdout, among=news.reports) + "\n\n")


def _tell_troubles(news: News) -> None:
    for trouble in news.troubles:
        say(_waited_for(trouble))


def _waited_for(trouble: str) -> str:
    return f"{visible(trouble)}; waiting for it"
