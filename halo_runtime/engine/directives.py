"""What `@retry`, `@timeout` and `@correct` say on an agent or a pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from halo_lang import catalog, nodes
from halo_lang.records import record


@record
class Retry:
    """`@retry(count, backoff)`: `count` more tries, the first wait `backoff` seconds, doubling."""

    count: int
    backoff: float


@record
class Directives:
    """None where a directive is not written. `timeout` in seconds, `correct` in rounds."""

    retry: Retry | None = None
    timeout: float | None = None
    correct: int | None = None
    checkpoint: bool = False

    def within(self, outer: Directives) -> Directives:
        """These with what the pipeline around says where they are silent.

        A time limit is not handed down: the one around goes on counting by itself.
        """
        return replace(
            self,
            retry=outer.retry if self.retry is None else self.retry,
            correct=outer.correct if self.correct is None else self.correct,
        )


NO_DIRECTIVES = Directives()


def read_directives(written: Sequence[nodes.Directive]) -> Directives:
    """The directives of a checked declaration as values; `@shadow` is read where the shadows are collected."""
    found = {directive.name.text: _arguments(directive) for directive in written}
    retry, timeout, correct = found.get("retry"), found.get("timeout"), found.get("correct")
    return Directives(
        retry=Retry(int(_number(retry["count"])), _seconds(retry.get("backoff"), 1.0)) if retry else None,
        timeout=_seconds(timeout.get("duration"), None) if timeout else None,
        correct=int(_number(correct["n"])) if correct else None,
        checkpoint="checkpoint" in found,
    )


def _arguments(directive: nodes.Directive) -> dict[str, nodes.ArgumentValue]:
    spec = catalog.directive(directive.name.text)
    if spec is None:
        return {}
    positional = [argument.value for argument in directive.args if argument.name is None]
    named = {argument.name.text: argument.value for argument in directive.args if argument.name is not None}
    return spec.signature.bind(positional, named).arguments


def _number(node: nodes.ArgumentValue) -> float:
    assert isinstance(node, nodes.Number), "checked by HL303"
    return node.value


def _seconds(node: nodes.ArgumentValue | None, default: float | None) -> float:
    if node is None:
        assert default is not None, "checked by HL302"
        return default
    assert isinstance(node, nodes.Duration), "checked by HL303"
    return node.seconds
