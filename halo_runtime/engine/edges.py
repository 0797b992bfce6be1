"""The edge of a run: what takes out of everything that leaves it what its policies redact (see policies/edge.py)."""

from __future__ import annotations

from halo_runtime.engine.plan import Plan
from halo_runtime.engine.reach import reach
from halo_runtime.json_types import JsonObject
from halo_runtime.redaction import Redactor


def edge_of(
    plan: Plan, pipeline: str, secrets: Redactor, inputs: JsonObject, memory: JsonObject | None = None
) -> Redactor:
    """The redactor for what leaves a run of a pipeline: `secrets` itself where no policy redacts anything.

    `memory` is what is kept of the marks that stand in the run's journal already.
    """
    policies = reach(plan, pipeline).policies
    if not policies:
        return secrets
    from halo_runtime.policies.edge import Edge, edge_kinds, end_of  # only runs with policies pay for it

    kinds = edge_kinds(plan.program, policies)
    return Edge(secrets, kinds, end_of(plan.program_sha256, inputs), memory) if kinds else secrets
