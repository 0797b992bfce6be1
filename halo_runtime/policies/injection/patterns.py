"""What attempts to instruct an agent look like: rows of classes of words, and marks that stand in the text as such.

A pattern of classes is written with their names: `a|b` is one of either, `a?` one or none, `~n` at most n words that
carry no meaning of their own, `..n` at most n words of any kind within the sentence, `!a` not behind an `a`,
`^a` not before one.
Each pattern is of a family and has a weight from 0 to 1: how sure it makes that it is an attempt.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from halo_lang.records import record
from halo_runtime.policies.injection.lexicon import ADDRESS, CLASSES, COLON, HIDDEN, OTHER, PARAGRAPH, SENTENCE

_NAMES: Final = {
    **CLASSES, "sentence": SENTENCE, "paragraph": PARAGRAPH, "colon": COLON, "address": ADDRESS, "hide": HIDDEN,
    "other": OTHER,
}  # fmt: skip
_GROUPS: Final = {
    "RULES": "rules|prompt",
    "ROBOT": "ai|bots|model",
    "SHOW": "reveal|tell",
    "ADVICE": "steer|reveal|send|ignore|obey|follow",
    "VERB": "steer|reveal|send|do|ignore|obey|follow",
}
_GAP: Final = (
    "glue|prior|all|your|you|now|hidden|received|new|only|colon|paragraph|must|authority|safety|not|verbatim|what"
)


@record
class Pattern:
    """A row of classes as a regular expression over their letters."""

    family: str
    weight: float
    expression: re.Pattern[str]
    needed: tuple[frozenset[str], ...]
    """Of each of these letters there must be one."""


@record
class Mark:
    """A regular expression over a view in lower case; one of the `hints` is in whatever it finds."""

    family: str
    weight: float
    hints: tuple[str, ...]
    expression: re.Pattern[str]


FAMILIES: Final = {
    "override": "to set aside the agent's instructions",
    "persona": "to give the agent another role",
    "extraction": "to get at the agent's instructions",
    "secrets": "to get at secrets",
    "exfiltration": "to send data away",
    "tools": "to have tools do something",
    "roles": "to pass for a part of the conversation",
    "authority": "to claim an authority",
    "address": "to instruct an agent that reads the text",
    "hiding": "to hide something from people",
    "encoding": "to have instructions decoded and followed",
}
"""The families, and what their texts attempt, for reasons."""

_PATTERNS: Final = (
    # Setting instructions aside
    ("override", 0.8, "!not ignore ~4 prior|all|your|received ~3 RULES"),
    ("override", 0.8, "!not ignore ~4 RULES ~3 prior|your|received ^other|messages"),
    ("override", 0.65, "!not undo ~4 prior|your|received ~3 RULES"),
    ("override", 0.55, "!not undo ~4 all ~3 RULES"),
    ("override", 0.6, "!not ignore ~2 hidden ~1 RULES|orders|messages"),
    ("override", 0.55, "!not ignore ~4 prior|all|your ~3 orders"),
    ("override", 0.35, "!not ignore ~4 prior|all|your ~3 messages|policy"),
    ("override", 0.55, "!not ignore|undo|off ~2 your ~2 policy"),
    ("override", 0.55, "!not ignore ~2 your ~2 orders|safety"),
    ("override", 0.6, "!not ignore ~2 all ~2 prior|received ^other|messages"),
    ("override", 0.55, "!not ignore ~1 prior ..3 all"),
    ("override", 0.55, "!not ignore ~2 RULES ~6 now"),
    ("override", 0.55, "!not ignore ~2 someone ~1 messages|orders"),
    ("override", 0.55, "prior ..2 received ..3 ignore"),
    ("override", 0.55, "all ~1 prior ~5 ignore"),
    ("override", 0.55, "not ~2 follow follow? ~4 prior|all|your|received|authority ~3 RULES"),
    ("override", 0.6, "not ~1 follow not? follow? ~2 RULES ~3 prior|your|received|authority ^other|messages"),
    ("override", 0.55, "not ~1 follow ~2 hidden ~1 RULES"),
    ("override", 0.6, "follow ~1 not ~3 RULES ~2 prior|your|received ^other|messages"),
    ("override", 0.6, "follow ~1 not ~2 prior|your ~3 RULES"),
    ("override", 0.55, "not ~1 follow ..3 sentence ~1 follow"),
    ("override", 0.6, "follow ~3 prior|all|your ~2 RULES ~1 not"),
    ("override", 0.6, "prior|all|your ~4 RULES|orders ~5 ignore"),
    ("override", 0.6, "RULES ~3 prior|all|your ~3 ignore"),
    ("override", 0.6, "RULES|orders ~3 prior|your|received ~5 void"),
    ("override", 0.6, "your|received ~3 RULES|orders ~4 void"),
    ("override", 0.5, "prior ~1 RULES ~4 void"),
    ("override", 0.6, "your ~3 RULES ~3 not ~3 apply"),
    ("override", 0.5, "prior ~1 RULES ~3 not ~3 apply"),
    ("override", 0.55, "not ~3 prior ~1 RULES ~2 apply"),
    ("override", 0.55, "RULES ~3 prior|your|received ~4 not ~3 apply|follow"),
    ("override", 0.55, "new ~1 RULES colon"),
    ("override", 0.55, "your ~1 new ~1 RULES|orders"),
    ("override", 0.55, "your ~1 RULES ~3 changed"),
    ("override", 0.5, "your ~1 only ~1 RULES"),
    # Another role
    ("persona", 0.6, "you ~2 now ..3 unbound|ai|god"),
    ("persona", 0.55, "you ~2 now ~1 authority? bots"),
    ("persona", 0.65, "persona|you|ROBOT|now ..8 unbound"),
    ("persona", 0.6, "unbound ..4 persona|mode"),
    ("persona", 0.6, "persona|you|now|your|steer ..4 ROBOT ..6 not ..2 RULES|policy|refuse"),
    ("persona", 0.55, "persona ..8 not ~3 RULES|policy|refuse"),
    ("persona", 0.5, "you ~3 not ~3 RULES"),
    ("persona", 0.55, "you ~3 RULES|policy ~1 not ~1 ROBOT"),
    ("persona", 0.45, "you ~3 not ~3 policy"),
    ("persona", 0.5, "steer ~1 not ~2 all? ~1 policy"),
    ("persona", 0.55, "you ~3 not ~1 refuse"),
    ("persona", 0.6, "hidden|god mode ..8 you ..4 not"),
    ("persona", 0.5, "god mode ..6 ROBOT|you|not|steer|reveal"),
    ("persona", 0.4, "safety|policy|RULES ~3 off"),
    # The agent's instructions
    ("extraction", 0.75, "SHOW ..6 your ~2 hidden ~1 RULES|orders|messages|config"),
    ("extraction", 0.65, "reveal ~4 prompt ~2 hidden"),
    ("extraction", 0.6, "SHOW ~2 your ~1 prior ~1 RULES"),
    ("extraction", 0.6, "reveal ..5 your ~2 RULES"),
    ("extraction", 0.6, "SHOW ~3 your|you ~1 prompt"),
    ("extraction", 0.6, "hidden prompt ~1 reveal"),
    ("extraction", 0.4, "tell ..5 your ~2 RULES"),
    ("extraction", 0.5, "SHOW ~3 your ~2 messages? config"),
    ("extraction", 0.6, "reveal ~4 hidden ~1 RULES"),
    ("extraction", 0.6, "SHOW|what|verbatim ..6 RULES ~3 you ~3 received"),
    ("extraction", 0.6, "SHOW|verbatim ..4 you|your ~1 received ~2 RULES"),
    ("extraction", 0.6, "reveal ..2 verbatim ..8 RULES"),
    ("extraction", 0.6, "RULES ~3 you ~3 received ..8 reveal|verbatim"),
    ("extraction", 0.55, "received ~1 RULES ~1 verbatim"),
    ("extraction", 0.55, "RULES ~1 received ~2 verbatim"),
    ("extraction", 0.6, "what ..4 your ~2 hidden ~1 RULES|orders|messages"),
    ("extraction", 0.55, "what ~3 your ~1 RULES ~1 hidden"),
    ("extraction", 0.55, "your ~1 hidden ~1 RULES ~2 what"),
    ("extraction", 0.5, "what ..4 your prompt"),
    ("extraction", 0.5, "what ~2 you ~1 received ~1 prior"),
    ("extraction", 0.55, "!not reveal ~3 all ~1 prior"),
    ("extraction", 0.5, "SHOW ..5 secrets ..6 your ~2 RULES"),
    # Sending data away
    ("exfiltration", 0.65, "send ..8 secrets|config ..8 address"),
    ("exfiltration", 0.65, "secrets|config ..10 send ~4 address"),
    ("exfiltration", 0.65, "all ..3 key ..12 send ~4 address"),
    ("exfiltration", 0.55, "send ..8 decode ..10 address"),
    ("exfiltration", 0.5, "send ~1 address ..8 messages|config|secrets"),
    ("exfiltration", 0.55, "send|reveal ~4 all ~3 secrets"),
    ("exfiltration", 0.55, "all ~1 secrets ..6 send"),
    ("exfiltration", 0.4, "send ~3 secrets"),
    ("exfiltration", 0.3, "send|reveal ~4 api key"),
    ("exfiltration", 0.25, "send ..12 address"),
    # Hiding something
    ("hiding", 0.35, "not ~2 quiet|reveal|steer ~2 someone|nobody"),
    ("hiding", 0.35, "not quiet ~2 must"),
    ("hiding", 0.35, "reveal ~1 nobody"),
    ("hiding", 0.25, "not ~2 quiet"),
    # Tools
    ("tools", 0.25, "do ..4 tool"),
    # Authority
    ("authority", 0.55, "authority ..10 allow|messages|orders ~2 you"),
    ("authority", 0.5, "you ~3 now ~2 allow"),
    ("authority", 0.5, "you ~3 allow ~1 authority"),
    ("authority", 0.45, "you ~3 allow ~2 reveal|ignore"),
    ("authority", 0.5, "authority ..10 you ~1 must ~2 reveal|ignore"),
    # Instructing whoever reads
    ("address", 0.6, "note glue? glue? all? language? ROBOT ..6 colon|must|you ..6 VERB|not"),
    ("address", 0.55, "note glue? glue? all? language? ROBOT ..2 ignore|not"),
    ("address", 0.6, "ai ..3 colon ~1 ADVICE|not"),
    ("address", 0.6, "language model ..3 colon ~1 ADVICE|not"),
    ("address", 0.35, "ai ..3 colon ~1 do"),
    ("address", 0.55, "bots colon ~1 ignore"),
    ("address", 0.55, "ai|bots ignore ~2 all|prior|your|someone"),
    ("address", 0.3, "bots ~1 colon ~1 VERB"),
    ("address", 0.55, "all ~1 language? ROBOT ..6 colon ..4 VERB"),
    ("address", 0.6, "RULES ~2 ROBOT ..3 colon ~2 VERB|tell"),
    ("address", 0.55, "messages ~2 ai|model ~1 colon ~1 VERB"),
    ("address", 0.3, "ROBOT ..1 reads ..3 colon"),
    ("address", 0.55, "ROBOT ..3 reads ..10 must|VERB"),
    ("address", 0.55, "language ROBOT ~1 you must ..2 VERB"),
    ("address", 0.55, "if you ~2 language? ROBOT ..4 VERB"),
    ("address", 0.5, "ai|bots if you ..6 VERB"),
    ("address", 0.3, "ROBOT ..10 must ~2 VERB|reads"),
    ("address", 0.6, "hide ..10 ai|bots ..4 colon|must ..3 VERB|not"),
    ("address", 0.5, "hide ..10 ai|bots ..12 ignore|steer|send"),
    # Passing for a part of the conversation
    ("roles", 0.5, "hidden colon ~1 you ~2 must"),
    # Decoding and following
    ("encoding", 0.5, "decode ..20 obey"),
)  # fmt: skip

_MARKS: Final = (
    ("roles", 0.75, "<|", r"<\|(?:im_start|im_end|start_header_id|end_header_id|eot_id|system|assistant|user)\|?>"),
    ("roles", 0.75, "inst] <<sys <</sys", r"\[/?inst\]|<</?sys>>"),
    ("roles", 0.55, "#", r"^[ \t>]*#{1,4}[ \t]*(?:system|instructions?|assistant|human|response)[ \t]*:[ \t]*$"),
    ("roles", 0.55, "</", r"</(?:instructions?|system|user_input|context|prompt|data)>\s*<(?:instructions?|system)>"),
    ("roles", 0.35, "</", r"</(?:instructions?|system|user_input|context|prompt)>"),
    ("roles", 0.55, "assistant: human:",
     r"^(?:human|user|assistant|system):[ \t]*\S+(?:[ \t]+\S+){2}[^\n]{0,400}\n\s*(?:assistant|human):"),
    ("roles", 0.55, "role",
     r"""["'][}\]]{1,4},?\s{0,8}\{\s{0,8}["']role["']\s{0,8}:\s{0,8}["'](?:system|developer)["']"""),
    ("roles", 0.35, "end_of begin start_of",
     r"^[^\w\n]{0,40}(?:end|begin(?:ning)?|start) of (?:the )?(?:user )?(?:input|prompt|document|context|data)\b"),
    ("roles", 0.5, "system",
     r"\bsystem (?:note|alert|override|message|prompt|update):|\[system\]\(#|```system\b|^-{3,}\s*system:"),
    ("roles", 0.55, "#", r"^#{1,4}[ \t]*new (?:system )?(?:instructions?|task|prompt)\b"),
    ("roles", 0.5, "message prompt instruction",
     r"^[^\w\n]{0,40}(?:begin|start|end) (?:of )?(?:the )?(?:system|admin|developer) "
     r"(?:message|prompt|instructions?)\b"),
    ("roles", 0.5, "assistant:", r"^assistant:[ \t]*(?:sure|of course|certainly|yes)[,!. ]"),
    ("override", 0.5, "only_to_me only_from_me only_me only_obey only_listen",
     r"\b(?:listen|obey|answer|follow|orders)[^.\n]{0,20}\bonly (?:to |from )?me\b"
     r"|\bonly (?:listen|obey)[^.\n]{0,12}\bme\b"),
    ("encoding", 0.5, "decode decipher decrypt reverse",
     r"\b(?:decode|decipher|decrypt|reverse)\b[^.\n]{0,60}\b(?:execute|run|obey|do|follow|carry out)\b "
     r"(?:it\b|them\b|what\b|the \w{1,20} (?:commands?|instructions?)\b)"),
    ("persona", 0.7, "do_anything_now",
     r"\bdo anything now\b.{0,80}\b(?:you|dan has)\b|\byou\b.{0,80}\bdo anything now\b"),
    ("persona", 0.6, "jailbr", r"\[jailbreak\]|\(jailbroken\)"),
    ("persona", 0.5, "character",
     r"\b(?:pretend|act|role-?play|simulate|play|be)\b[^\n]{0,200}\b(?:stay in|break|leave) (?:your )?character\b"),
    ("exfiltration", 0.65, "](http", r"!?\[[^\]\n]{0,200}\]\(https?://[^\s)]{1,200}[?&/=](?:<|\{|\[|%7b|\$)"),
    ("secrets", 0.4, "cat ~/. id_rsa /etc/", r"\$\(\s*cat\s|~/\.(?:ssh|aws)/|\bid_rsa\b|/etc/(?:passwd|shadow)\b"),
    ("tools", 0.4, "curl wget", r"\b(?:curl|wget)\b[^\n|]{1,200}\|\s*(?:ba|z)?sh\b"),
    ("tools", 0.45, "-rf", r"\brm\s+-rf\s+/(?!\w)"),
    ("tools", 0.3, "call invoke use run execute",
     r"\b(?:call|invoke|use|run|execute)\s+(?:the\s+)?[\"'`]?[a-z]{1,40}[_.][a-z_]{1,40}\b"),
    ("encoding", 0.55, "says contain together decodes",
     r"\b(?:do|execute|obey|follow|run|carry out)\b.{0,40}\b(?:it|they|parts?|message|text)\s+"
     r"(?:says?|contains?|together|decodes?)\b"),
    ("encoding", 0.55, "in_it inside you_find hidden",
     r"\b(?:execute|obey|follow|run|carry out) (?:the |all |any )?(?:\w{1,20} )?"
     r"(?:instructions|steps|orders?|commands?)[^.\n]{0,12} (?:in it|inside|you find|hidden)\b"),
)  # fmt: skip


@cache
def patterns() -> tuple[Pattern, ...]:
    """The patterns of classes, the surest first."""
    made = [Pattern(family, weight, *_compiled(row)) for family, weight, row in _PATTERNS]
    return tuple(sorted(made, key=lambda pattern: -pattern.weight))


@cache
def needs() -> frozenset[frozenset[str]]:
    """What patterns need one letter of each."""
    return frozenset(letters for pattern in patterns() for letters in pattern.needed)


@cache
def marks() -> tuple[Mark, ...]:
    """The marks, the surest first."""
    made = [
        Mark(
            family,
            weight,
            tuple(hint.replace("_", " ") for hint in hints.split()),
            re.compile(expression, re.MULTILINE),
        )
        for family, weight, hints, expression in _MARKS
    ]
    return tuple(sorted(made, key=lambda mark: -mark.weight))


def _compiled(row: str) -> tuple[re.Pattern[str], tuple[frozenset[str], ...]]:
    elements = row.split()
    needed = tuple(frozenset(_letters(name)) for name in elements if name[0] not in "~.!^" and name[-1] != "?")
    return re.compile("".join(map(_element, elements))), needed


def _element(element: str) -> str:
    if element.startswith("~"):
        return f"[{_letters(_GAP)}]{{0,{2 * int(element[1:])}}}?"
    if element.startswith(".."):
        return f"[^{SENTENCE}]{{0,{element[2:]}}}?"
    if element.startswith("!"):
        return f"(?<![{_letters(element[1:])}])"
    if element.startswith("^"):
        return f"(?![{re.escape(_letters(element[1:]))}])"
    return f"[{_letters(element.removesuffix('?'))}]" + "?" * element.endswith("?")


def _letters(names: str) -> str:
    """The letters of `a|b`, groups included."""
    return "".join(_NAMES[name] for part in names.split("|") for name in _GROUPS.get(part, part).split("|"))
