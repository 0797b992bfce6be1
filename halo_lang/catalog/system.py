"""The built-in callee `System` (seed 003 §5, spec 2.5 and 12.2)."""

from __future__ import annotations

from halo_lang.catalog.signature import Method, Parameter, Signature, optional, required


def _passing(name: str, doc: str, *parameters: Parameter, example: str) -> Method:
    return Method(name, Signature(parameters), "the flowing value", "read", True, doc, example, passes=True)


def _event(name: str, doc: str, example: str) -> Method:
    payload = optional("payload", doc="What the event carries; the flowing value when left out.")
    return Method(
        name,
        Signature((payload,)),
        "the flowing value",
        effect="write",
        idempotent=False,
        doc=doc,
        example=example,
        passes=True,
        event=True,
    )


_SHOWN = optional("value", doc="What to show; the flowing value when left out.")

SYSTEM_METHODS: tuple[Method, ...] = (
    _passing("Print", "Show a value to whoever watches the run.", _SHOWN, example='System.Print("{{text}}")'),
    _passing("Log", "Put a value into the run's log.", _SHOWN, example='System.Log("got {{current}}")'),
    _passing(
        "Sleep",
        "Wait before the next stage.",
        required("duration", "duration", "How long to wait.", positive=True),
        example="System.Sleep(2s)",
    ),
    Method(
        "Fail",
        Signature((required("msg", doc="Why the run fails."),)),
        "nothing: the run fails with ProgramFailure",
        doc="End the run as failed.",
        example='System.Fail("no issue {{number}}")',
    ),
    Method(
        "Value",
        Signature((required("x", doc="The new flowing value."),)),
        "x",
        doc="Make a value the flowing value.",
        example='System.Value("ready")',
    ),
    Method(
        "Pick",
        Signature(
            (
                required("value", doc="An object, or a list of objects."),
                optional("fields", "list", "Dotted fields to keep, mapped over lists.", items="string"),
                optional("maxChars", "integer", "Cut whole items from the end to fit.", minimum=1),
            )
        ),
        "value with those fields only, in the same shape",
        doc="Keep only some fields of an object or of each item of a list.",
        example='System.Pick(issues, fields: ["number", "labels.name"], maxChars: 1500)',
    ),
    _event("ResolveIncident", "Tell the host that an incident is resolved.", 'System.ResolveIncident("{{id}}")'),
    _event("Publish", "Tell the host to publish a value.", "System.Publish(post)"),
    _event("Distribute", "Tell the host to hand a value out.", "System.Distribute()"),
    _event("TriggerWebhook", "Tell the host to trigger a webhook.", 'System.TriggerWebhook("deployed")'),
    _event("Notify", "Tell the host to notify somebody.", 'System.Notify("done: {{text}}")'),
)
"""All methods of `System`."""
