"""An answer or event that was sent, brought to the question that it is for (spec 2.6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from halo_runtime.engine.clock import Clock
from halo_runtime.engine.execution import Order
from halo_runtime.engine.journal import EffectRecord, error_to_record
from halo_runtime.engine.run import expiry, interrupt_id, request_of
from halo_runtime.errors import AlreadyAnswered, AmbiguousSignal, InterruptExpired, SignalError, UnknownInterrupt
from halo_runtime.json_types import JsonObject
from halo_runtime.results import Answer, Interrupt
from halo_runtime.store.mail import Message
from halo_runtime.values import digest

LeftFor: TypeAlias = Callable[[Interrupt], Answer | None]
"""What was left for a question and will be taken when the run goes on."""


def is_early(message: Message, interrupts: tuple[Interrupt, ...]) -> bool:
    """Whether it is an event that nobody waits for yet; it is kept for the next listen that does."""
    return message.event is not None and not any(question.event == message.event for question in interrupts)


def is_behind(message: Message, interrupts: tuple[Interrupt, ...], left_for: LeftFor) -> bool:
    """Whether it is an event that must wait for its turn: it is early, or another was left before it."""
    if message.event is None:
        return False
    waiting = [question for question in interrupts if message.suits(question)]
    return is_early(message, interrupts) or (len(waiting) == 1 and left_for(waiting[0]) is not None)


def deliver(
    message: Message, order: Order, interrupts: tuple[Interrupt, ...], clock: Clock, left_for: LeftFor
) -> InterruptExpired | None:
    """Record an answer as the result of its question. One that is late fails the question: its error is given back.

    Where one was left for the question before, that one is taken: whoever left it was told so. Raises SignalError of
    the kind that says why the answer is refused; nothing is recorded then.
    """
    question = chosen(message, order, interrupts)
    late = expiry(question, clock)
    first = left_for(question) if late is None else None
    if first is not None:
        raise AlreadyAnswered(
            f"the question {question.id} is already answered: {first.by or 'somebody'} left an answer at {first.at}; "
            f"it is taken when the run goes on: halo resume {order.run_id}"
        )
    kind = "human" if question.event is None else "event"
    outcome = ("done", message.value) if late is None else ("failed", error_to_record(late))
    credit = {"by": message.by, "at": message.at, "how": message.how}
    if late is not None:
        credit |= {"by": None, "how": "expired"}
    asked = request_of(_question(question))
    sha256 = digest(asked if order.edge is None else order.edge.identity(asked))
    sources = (question.origins, question.guards)
    order.journal.append(EffectRecord(question.path, kind, sha256, *outcome, *sources, answer=credit))
    return late


def chosen(message: Message, order: Order, interrupts: tuple[Interrupt, ...]) -> Interrupt:
    """The open question that a message is for. Raises SignalError where there is none, or it cannot take the value."""
    question = _chosen(message, order, interrupts)
    if not question.takes(message.value):
        raise SignalError(f"{question.id} is answered {question.how}")
    return question


def _chosen(message: Message, order: Order, interrupts: tuple[Interrupt, ...]) -> Interrupt:
    listed = _listed(interrupts)
    fitting = [question for question in interrupts if message.event in (None, question.event)]
    if message.interrupt is None:
        if len(fitting) == 1:
            return fitting[0]
        if fitting:
            raise AmbiguousSignal(f"several questions are open, name one: {listed}")
        raise UnknownInterrupt(f"the run {order.run_id} has no open question")
    found = next((question for question in fitting if question.id == message.interrupt), None)
    if found is not None:
        return found
    answered = (entry.path for entry in order.journal if entry.kind in ("human", "event"))
    if message.interrupt in (interrupt_id(order.run_id, path) for path in answered):
        raise AlreadyAnswered(f"the question {message.interrupt} is already answered; open are: {listed}")
    raise UnknownInterrupt(f"no open question has the id {message.interrupt}; open are: {listed}")


def refuse_ambiguous(interrupts: tuple[Interrupt, ...]) -> None:
    """Refuse what names no question where several are open. Raises AmbiguousSignal."""
    if len(interrupts) > 1:
        raise AmbiguousSignal(f"several questions are open, name one: {_listed(interrupts)}")


def _listed(interrupts: tuple[Interrupt, ...]) -> str:
    return "; ".join(f"{question.id} ({question.message})" for question in interrupts) or "none"


def _question(question: Interrupt) -> JsonObject:
    """What stages/ask.py asked with."""
    return {
        "kind": question.kind,
        "message": question.message,
        "channel": question.channel,
        "attachments": list(question.attachments),
        "choices": list(question.choices),
        "event": question.event,
    }
