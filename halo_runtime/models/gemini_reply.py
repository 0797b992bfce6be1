"""The answer of Gemini's generateContent as a ModelReply.

Pure. An answer that streams is a row of answers with a part of the text each; `Answer` takes one after another, and so
has the same result with and without streaming.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from halo_runtime.json_types import Json, JsonObject, is_list, is_object
from halo_runtime.models.base import ModelReply, Stop, ToolCall, Usage
from halo_runtime.models.chat import MAX_TOLD, NO_TOKENS_LEFT, ToolNames, count
from halo_runtime.models.endings import Refuse, check_ended
from halo_runtime.models.gemini_request import Layout
from halo_runtime.models.spending import used
from halo_runtime.models.surrogates import Mended, valid_text

_FILTERED: Final = "SAFETY RECITATION BLOCKLIST PROHIBITED_CONTENT SPII IMAGE_SAFETY IMAGE_PROHIBITED_CONTENT"
_STOPS: Final[dict[str | None, Stop]] = {
    "STOP": "end",
    "MAX_TOKENS": "length",
    "CONTINUATION": "length",
    **dict.fromkeys(_FILTERED.split(), "content_filter"),
}
"""Reasons to finish that mean something to us; any other one is told in a warning."""

_BROKEN: Final = {
    "MALFORMED_FUNCTION_CALL": True,
    "MALFORMED_RESPONSE": True,
    "UNEXPECTED_TOOL_CALL": True,
    "TOO_MANY_TOOL_CALLS": False,
    "MISSING_THOUGHT_SIGNATURE": False,
}
"""Reasons to finish that leave no answer, and whether another try may bring one (an accident of sampling)."""


@dataclass(slots=True)
class Answer:
    """One answer as it comes, in one document or in many, over one exchange or several."""

    model: str
    names: ToolNames
    refuse: Refuse
    _finish: str | None = None
    _token: str | None = None
    _finish_message: str = ""
    _blocked: str | None = None
    _answered: bool = False
    _model_used: str | None = None
    _texts: list[str] = field(default_factory=list[str])
    _calls: dict[str, ToolCall] = field(default_factory=dict[str, ToolCall])
    _layout: list[JsonObject] = field(default_factory=list[JsonObject])
    _usage: dict[int, Usage] = field(default_factory=dict[int, Usage])
    _exchanges: int = 0
    _mended: Mended = field(default_factory=Mended)

    def begin(self) -> None:
        """An exchange begins: its usage is counted apart, and its end is to come."""
        self._exchanges += 1
        self._finish = self._token = None

    @property
    def ended(self) -> bool:
        """Whether the service said that the exchange is over."""
        return self._finish is not None or self._blocked is not None

    @property
    def continuation(self) -> str | None:
        """What the same request goes on with after an exchange that ended at the service's own limit."""
        return self._token if self._finish == "CONTINUATION" else None

    def take(self, document: JsonObject) -> str:
        """Add a document of the service; the text that it brought."""
        feedback: Json = document.get("promptFeedback")
        if is_object(feedback):
            self._blocked = _told(feedback.get("blockReason")) or self._blocked
        usage: Json = document.get("usageMetadata")
        if is_object(usage):  # what streams counts up: the last one holds
            self._usage[self._exchanges] = _usage(usage)
        self._model_used = _told(document.get("modelVersion")) or self._model_used
        candidates: Json = document.get("candidates")
        candidate: Json = candidates[0] if is_list(candidates) and candidates else None
        return self._take_candidate(candidate) if is_object(candidate) else ""

    def end(self) -> str:
        """The text that was held back for the rest of a character, where none came."""
        rest = self._mended.end()
        if rest:
            self._add_text(rest, {})
        return rest

    def reply(self) -> ModelReply:
        """All that came as one reply; raises where it cannot be used."""
        self.end()
        usage = _sum([self._usage.get(number + 1, Usage()) for number in range(self._exchanges)])
        with used(usage):
            self._check_answered()
        return ModelReply(
            text="".join(self._texts),
            tool_calls=tuple(self._calls.values()),
            stop="tool" if self._calls else "end",
            usage=usage,
            model_used=self._model_used,
            warnings=self._warnings(),
            opaque=Layout(self.model, tuple(self._layout)).to_json() if self._signed() else None,
        )

    def _take_candidate(self, candidate: JsonObject) -> str:
        self._answered = True
        self._finish = _told(candidate.get("finishReason")) or self._finish
        self._token = _string(candidate.get("continuationToken")) or self._token
        self._finish_message = _told(candidate.get("finishMessage")) or self._finish_message
        content: Json = candidate.get("content")
        parts: Json = content.get("parts") if is_object(content) else None
        return "".join(self._take_part(part) for part in (parts if is_list(parts) else ()) if is_object(part))

    def _take_part(self, part: JsonObject) -> str:
        """Add one part; thoughts are no part of the answer."""
        if part.get("thought") is True:
            return ""
        signature = _string(part.get("thoughtSignature"))
        signed = {"thoughtSignature": signature} if signature else {}
        call: Json = part.get("functionCall")
        name = _string(call.get("name")) if is_object(call) else None
        if is_object(call) and name is not None:
            rest = self.end()
            self._layout.append({"call": len(self._calls), **signed})
            self._add_call(name, call)
            return rest
        raw: Json = part.get("text")
        text = self._mended.feed(raw if isinstance(raw, str) else "")
        self._add_text(text, signed)
        return text

    def _add_call(self, name: str, call: JsonObject) -> None:
        originals = {wire: name for name, wire in self.names.items()}
        id_ = _string(call.get("id")) or f"call_{len(self._calls) + 1}"
        while id_ in self._calls:
            id_ += "_"
        arguments: Json = call.get("args")
        text = json.dumps(arguments if arguments is not None else {}, ensure_ascii=False)
        self._calls[id_] = ToolCall(id_, originals.get(name, name), valid_text(text))

    def _add_text(self, text: str, signed: JsonObject) -> None:
        """Text joins the text before it, unless one of them is signed: a signature holds for its own part."""
        self._texts.append(text)
        last = self._layout[-1] if self._layout else None
        if last is not None and last.keys() == {"text"} and not signed:
            last["text"] += len(text)
        elif text or signed:
            self._layout.append({"text": len(text), **signed})

    def _signed(self) -> bool:
        return any("thoughtSignature" in part for part in self._layout)

    def _warnings(self) -> tuple[str, ...]:
        odd = self._finish is not None and self._finish not in _STOPS
        return (f"the service ended the reply with {self._finish}",) if odd else ()

    def _told_finish(self, stop: Stop) -> str | None:
        """The service's own word for a filter that says more than ours."""
        return self._finish if stop == "content_filter" else None

    def _check_answered(self) -> None:
        """Raise for an answer of which nothing can be used."""
        said = f": {self._finish_message}" if self._finish_message else ""
        if self._finish is None and self._blocked is not None:
            problem = f"blocked the prompt ({self._blocked}); the service does not answer it"
            raise self.refuse(problem, code="content_filter")
        if not self._answered:
            raise self.refuse("answered without any candidate", retryable=True, code="empty_response")
        if self._finish in _BROKEN:
            problem, accident = f"gave no usable answer ({self._finish}{said})", _BROKEN[self._finish]
            raise self.refuse(problem, retryable=accident, code="malformed_response")
        if self._calls:
            return
        says, stop = any(self._texts), _STOPS.get(self._finish, "end")
        if stop == "length" and not says:
            raise self.refuse(NO_TOKENS_LEFT, code="output_limit")
        check_ended(stop, self.refuse, ": ".join(filter(None, (self._told_finish(stop), self._finish_message))))
        if says:
            return
        problem = f"answered with an empty message (finishReason {self._finish}{said})"
        raise self.refuse(problem, retryable=True, code="empty_response")


def _string(value: Json) -> str | None:
    return valid_text(value) if isinstance(value, str) and value else None


def _told(value: Json) -> str | None:
    """What people are shown: on one line, bounded."""
    return " ".join(valid_text(value).split())[:MAX_TOLD] or None if isinstance(value, str) else None


def _usage(wire: JsonObject) -> Usage:
    """The service leaves out counts of zero; what it does not count one by one follows from the total."""
    prompt, total = count(wire.get("promptTokenCount")), count(wire.get("totalTokenCount"))
    answer, thoughts = count(wire.get("candidatesTokenCount")), count(wire.get("thoughtsTokenCount"))
    tokens_in = None if prompt is None else prompt + (count(wire.get("toolUsePromptTokenCount")) or 0)
    tokens_out = None if answer is None else answer + (thoughts or 0)
    if tokens_out is None and tokens_in is not None and total is not None and total >= tokens_in:
        tokens_out = total - tokens_in
    return Usage(tokens_in, tokens_out, cached=count(wire.get("cachedContentTokenCount")), reasoning=thoughts)


def _sum(usages: Sequence[Usage]) -> Usage:
    """The usage of several exchanges, each of which is billed."""
    return Usage(
        input=_total(usage.input for usage in usages),
        output=_total(usage.output for usage in usages),
        cached=_total((usage.cached for usage in usages), missing=0),
        reasoning=_total((usage.reasoning for usage in usages), missing=0),
    )


def _total(numbers: Iterable[int | None], missing: int | None = None) -> int | None:
    """The sum; None where all are unknown, and where one is that `missing` does not stand for."""
    listed = list(numbers)
    if all(number is None for number in listed):
        return None
    known = [number for number in (missing if number is None else number for number in listed) if number is not None]
    return sum(known) if len(known) == len(listed) else None
