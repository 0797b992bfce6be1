"""All that an agent needs to log its loop well: the text of `halo_guide` and `halo trace guide`."""

from __future__ import annotations

from typing import Final

from halo_runtime.ledger.analysis import LEVELS
from halo_runtime.ledger.rules import LONGEST_SUMMARY, MOST_USES

_TOOLS: Final = """# How to log your loop

Log each step of your loop when it happens, one call a step. Halo keeps the steps and reads your loop off their links;
it does not interpret summaries, and it infers nothing that no link shows.

## The six logging tools

- `halo_observe` (observe, Sensing): you take in something new: a user message, a page, a sensor reading, a tool result.
- `halo_outcome` (outcome, Sensing): you learn how one of your earlier actions went: a reply, a rating, a dismissal, a
  correction, a result.
- `halo_remember` (remember, Memory): you keep something for later interactions: a fact, a preference, a record of what
  you did.
- `halo_recall` (recall, Memory): you look up something that you kept earlier.
- `halo_act` (act, Action): you do something for the user, or decide to stay silent.
- `halo_revise` (revise, of no module): you change your own way of working: a prompt, rule, skill, or policy that you
  will reuse.

`halo_trace` shows what you logged, with the ids; `halo_report` what it shows; `halo_guide` this text.

## Fields

All tools take:

- `summary`: what happened, in a few words. No secrets, passwords, or raw personal data.
- `uses`: ids of earlier events this step relied on, such as ["e3", "e7"].
- `session`: a label for the conversation or wake-up, the same for each step in it.
- `agent`: your name. Empty means the server's --agent value, then the name your client sent.

`halo_act` needs:

- `trigger`: `request` if the user asked for it or set it up, including every step inside a run the user requested or
  scheduled, even when you choose how to do it. `self` only if no request or schedule of the user started it and you
  decided by yourself, between requests, whether to act or to stay silent.
- `form`: `silence`, `communication`, `preparation`, or `execution`.

`halo_outcome` needs:

- `about`: the id of your earlier act event the outcome is about.

`halo_revise` needs:

- `target`: what changed: the prompt, rule, skill, or policy.
- `made_by`: `agent` if you made the change, `user` if a user or developer wrote it.
- `governance`: `approved` if the user approved it, `bounded` if it stays within limits the user set, `none` otherwise.
"""

_LINKS: Final = """
## What to link

Name what the step actually relied on, and nothing else.

- An action names the observations and memories its decision used.
- A memory names what it keeps: an observation, an action, or an outcome.
- An observation names an earlier action when that action made you look, for example to check whether a sent message
  arrived (the channel A→S). It names a memory when the memory shaped what you looked for or how you read it (M→S).
- A revision names the outcomes that led to it, and a later action names the revision it follows.
- Without a `session` label nothing can show that a memory lasts.

A call that breaks a rule is not stored; the reply says all that is to be fixed.

## What a report says

Six channels: S→M, S→A, M→S, M→A, A→S, A→M. A link from a step to an earlier one realises the channel from the
earlier one's module to its own. Six evidence steps:

- State durability: a memory is used in another session than its own, directly or through a recall there.
- Self-initiated action: an act with trigger `self` that uses something; silence is told apart.
- Outcome return: an outcome about an act.
- Outcome use: an outcome is used by a later remember, act or revise, directly or through memory.
- Agent revision: a revise made by the agent that rests on an outcome, directly or through memory; with its governance.
- Revision in force: a later act uses such a revision.

The level is the highest whose conditions, and those of all below it, are observed:

"""


MISSING: Final = "What is missing is not observed, which is not the same as absent."


def guide() -> str:
    """The guide, in Markdown."""
    limits = f"\nA summary has at most {LONGEST_SUMMARY} characters, `uses` at most {MOST_USES} ids and none twice.\n"
    return f"{_TOOLS}{limits}{_LINKS}{rubric()}\n"


def rubric() -> str:
    """The levels and what each needs, as a list in Markdown."""
    levels = "\n".join(f"- Level {level.number}, {level.name}: {level.meaning}." for level in LEVELS)
    return f"{levels}\n\nA level says what the trace shows. {MISSING}"
