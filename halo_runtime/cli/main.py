"""The entry point of `halo`: streams, exit codes and the last word on whatever goes wrong.

A command function returns an exit code or raises HaloError for what it refuses. Everything else is a bug and is
reported as one; `HALO_DEBUG=1` shows the traceback.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from itertools import pairwise

from halo_runtime.cli.exit_codes import ExitCode
from halo_runtime.version import __version__

_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EPIPE)
"""What stdout fails with; all other files have their own errors where they are read and written."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `halo` with `arguments` (default: the process's) and return its exit code."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _guarded(arguments)
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except OSError as failure:
        return _unwritable(failure)


def _guarded(arguments: list[str]) -> int:
    """The border: nothing leaves as an exception but Ctrl-C, and the OSError of an output that cannot be written."""
    if arguments == ["--version"]:
        # Answered before click is imported, which takes longer than all the rest.
        print(f"halo {__version__}", flush=True)
        return ExitCode.COMPLETED
    from halo_runtime.cli.output import prepare_streams

    prepare_streams()
    try:
        return _invoke(arguments)
    except Exception as failure:
        if isinstance(failure, OSError) and failure.errno in _UNWRITABLE:
            raise
        return _failed(failure, as_json=_wants_json(arguments))


def _invoke(arguments: list[str]) -> int:
    import click

    from halo_runtime.cli.group import halo

    try:
        outcome = halo.main(args=arguments, prog_name="halo", standalone_mode=False)
    except click.ClickException as refusal:
        return _refused(refusal, as_json=_wants_json(arguments))
    except click.Abort:
        return ExitCode.INTERRUPTED
    return outcome if isinstance(outcome, int) else ExitCode.COMPLETED


def _wants_json(arguments: list[str]) -> bool:
    """Whether what goes wrong is to be told as JSON too; asked when options may not have been understood."""
    return "--json" in arguments or "--format=json" in arguments or ("--format", "json") in pairwise(arguments)


def _refused(refusal: Exception, *, as_json: bool) -> int:
    """Click's own complaint about options and arguments, in our form."""
    import click

    from halo_runtime.cli.usage import UsageError

    assert isinstance(refusal, click.ClickException)
    context = refusal.ctx if isinstance(refusal, click.UsageError) else None
    hint = f"{context.command_path} --help" if context is not None else None
    return _failed(UsageError(refusal.format_message(), hint=hint), as_json=as_json)


def _failed(failure: Exception, *, as_json: bool) -> int:
    """Say what went wrong, on stdout as JSON or on stderr as a block, and give the exit code."""
    from halo_runtime.cli.exit_codes import of_refusal
    from halo_runtime.cli.output import error_block, say, tell_json
    from halo_runtime.errors import HaloError
    from halo_runtime.redaction import Redactor
    from halo_runtime.results import error_to_json

    redacted = Redactor.for_environment(os.environ).text
    if os.environ.get("HALO_DEBUG") == "1":
        say(redacted(_traceback(failure)))
    if isinstance(failure, HaloError):
        if as_json:
            tell_json({"error": error_to_json(failure)})
        else:
            say(error_block(failure))
        return of_refusal(failure)
    bug = redacted(f"{type(failure).__name__}: {failure}")
    if as_json:
        tell_json({"error": {"type": "InternalError", "message": bug}})
    say(f"error: this is a bug in halo: {bug}\n  = hint: HALO_DEBUG=1 shows where; please report it with the program")
    return ExitCode.FAILED


def _unwritable(failure: OSError) -> int:
    from halo_runtime.cli.output import discard_from_now_on, say

    if sys.stdout is not None:
        discard_from_now_on(sys.stdout)
    if failure.errno == errno.EPIPE:
        return ExitCode.COMPLETED
    say(f"error: the output cannot be written: {failure.strerror}")
    return ExitCode.FAILED


def _traceback(failure: Exception) -> str:
    import traceback

    return "".join(traceback.format_exception(failure)).rstrip()


if __name__ == "__main__":
    sys.exit(main())
