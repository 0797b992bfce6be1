"""What Linear refuses of a request before anything is looked at: headers, GraphQL, arguments, complexity.

The schema (`linear.graphql`) is what Linear's own TypeScript SDK 98 (npm `@linear/sdk`, MIT, © Linear) declares of the
types that are used here, with those of their fields that lead to no other type.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    OperationDefinitionNode,
    OperationType,
    SelectionSetNode,
    ValueNode,
    VariableNode,
    build_schema,
    get_named_type,
    parse,
    validate,
)
from graphql.execution.values import get_variable_values
from graphql.utilities import value_from_ast_untyped

from tests.fakes.wire import Received

SCHEMA = build_schema((Path(__file__).parent / "linear.graphql").read_text())
MOST_COMPLEX = 10_000
PAGE = 50
"""What a connection counts for that names no page."""


class Wrong(Exception):
    """A refusal: its status, message, and extensions."""

    def __init__(self, status: int, message: str, code: str, kind: str) -> None:
        super().__init__(message)
        self.status = status
        self.errors = [{"message": message, "extensions": {"code": code, "type": kind}}]


class Asked:
    """A request that is in order."""

    def __init__(self, document: DocumentNode, query: str, variables: dict[str, Any]) -> None:
        operation = operation_of(document)
        self.query, self.variables = query, variables
        self.mutates = operation.operation is OperationType.MUTATION
        self.fields = [node.name.value for node in operation.selection_set.selections if isinstance(node, FieldNode)]
        self.complexity = complexity(document, variables)


def read(request: Received, authorization: str) -> Asked:
    """What a request asks. Raises Wrong."""
    if (request.method, request.path) != ("POST", "/graphql"):
        raise Wrong(404, f"Cannot {request.method} {request.path}", "NOT_FOUND", "unknown")
    if request.headers.get("authorization") != authorization:
        message = "Authentication required, not authenticated"
        raise Wrong(401, message, "AUTHENTICATION_ERROR", "authentication error")
    body = request.body
    if not isinstance(body, dict) or not {"query"} <= body.keys() <= {"query", "variables", "operationName"}:
        raise Wrong(
            400, "POST body missing, invalid Content-Type, or JSON object has no keys.", "BAD_REQUEST", "unknown"
        )
    asked = _parsed(body["query"], body.get("variables") or {})
    if asked.complexity > MOST_COMPLEX:
        message = f"Query too complex: {asked.complexity} of {MOST_COMPLEX}"
        raise Wrong(400, message, "INPUT_ERROR", "invalid input")
    return asked


def _parsed(query: str, variables: dict[str, Any]) -> Asked:
    try:
        document = parse(query)
    except GraphQLError as error:
        raise Wrong(400, error.message, "GRAPHQL_PARSE_FAILED", "graphql error") from None
    operation = operation_of(document)
    errors = validate(SCHEMA, document)
    values = get_variable_values(SCHEMA, operation.variable_definitions, variables)
    errors += values if isinstance(values, list) else []
    undeclared = variables.keys() - {one.variable.name.value for one in operation.variable_definitions}
    errors += [GraphQLError(f"undeclared variables {sorted(undeclared)}")] if undeclared else []
    if errors:
        raise Wrong(400, errors[0].message, "GRAPHQL_VALIDATION_FAILED", "graphql error")
    return Asked(document, query, variables)


def complexity(document: DocumentNode, variables: dict[str, Any]) -> int:
    """A tenth for a field, one for an object, and a connection's nodes as often as its page is long."""
    fragments = {one.name.value: one for one in document.definitions if isinstance(one, FragmentDefinitionNode)}
    operation = operation_of(document)
    root = SCHEMA.mutation_type if operation.operation is OperationType.MUTATION else SCHEMA.query_type

    def fields(selected: SelectionSetNode) -> Iterator[FieldNode]:
        for node in selected.selections:
            if isinstance(node, FragmentSpreadNode):
                yield from fields(fragments[node.name.value].selection_set)
            else:
                assert isinstance(node, FieldNode)
                yield node

    def of(selected: SelectionSetNode, parent: Any) -> float:
        total = 0.0
        for node in fields(selected):
            field = parent.fields.get(node.name.value)  # none for `__typename`
            if node.selection_set is None or field is None:
                total += 0.1
                continue
            kind: Any = get_named_type(field.type)
            times = _page(node, variables) if kind.name.endswith(("Connection", "SearchPayload")) else 1
            total += 1 + times * of(node.selection_set, kind)
        return total

    return math.ceil(of(operation.selection_set, root))


def operation_of(document: DocumentNode) -> OperationDefinitionNode:
    """The one operation of a document."""
    [operation] = [node for node in document.definitions if isinstance(node, OperationDefinitionNode)]
    return operation


def _page(node: FieldNode, variables: dict[str, Any]) -> int:
    given = {one.name.value: _value(one.value, variables) for one in node.arguments}
    first = given.get("first") or given.get("last") or PAGE
    if not 1 <= first <= 250:
        raise Wrong(
            400, "Argument Validation Error: first must not be greater than 250", "INPUT_ERROR", "invalid input"
        )
    return first


def _value(node: ValueNode, variables: dict[str, Any]) -> Any:
    return variables.get(node.name.value) if isinstance(node, VariableNode) else value_from_ast_untyped(node)
