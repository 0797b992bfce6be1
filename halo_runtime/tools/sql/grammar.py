"""What a statement does, by PostgreSQL's own parser (libpg_query through postgast), before it is sent (reference 2.7).

Looking at words is not enough: comments, `WITH … DELETE`, `EXPLAIN ANALYZE DELETE` and `SELECT … INTO` get by. Here
nothing is let through but what is known to read. Of what is left, calls of functions, only the server can say what
they do: their names are handed back, to be looked up there.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from halo_lang.records import record
from halo_runtime.errors import ToolError

if TYPE_CHECKING:
    from google.protobuf.message import Message
    from postgast.pg_query_pb2 import ParseResult

_READING: Final = frozenset({"RawStmt", "SelectStmt", "ExplainStmt", "VariableShowStmt"})
_PLANNED: Final = frozenset({"SelectStmt", "InsertStmt", "UpdateStmt", "DeleteStmt", "MergeStmt"})
"""What `explain` takes; without ANALYZE none of them is run."""

_OF_SESSION: Final = {
    "TransactionStmt": "every call is a transaction of its own",
    "VariableSetStmt": "a setting would outlast its call",
    "DiscardStmt": "the connection is shared by the calls of a run",
    "PrepareStmt": "it would outlast its call",
    "ExecuteStmt": "nothing is prepared here",
    "DeallocateStmt": "nothing is prepared here",
    "DeclareCursorStmt": "a cursor ends with its call",
    "FetchStmt": "a cursor ends with its call",
    "ClosePortalStmt": "a cursor ends with its call",
    "ListenStmt": "nobody would hear it",
    "UnlistenStmt": "nobody listens",
    "LoadStmt": "a library would outlast its call",
    "CopyStmt": "it moves data past the call; use insert and query",
}
"""What `execute` refuses, and why."""

_WORDS: Final = {
    "CreateTableAsStmt": "CREATE TABLE AS",
    "VariableSetStmt": "SET",
    "TransactionStmt": "BEGIN, COMMIT or ROLLBACK",
    "CreateFunctionStmt": "CREATE FUNCTION",
    "DeclareCursorStmt": "DECLARE CURSOR",
    "ClosePortalStmt": "CLOSE",
    "IntoClause": "SELECT INTO",
    "LockingClause": "FOR UPDATE or FOR SHARE",
}

_TEXT_RUNNERS: Final = (
    "connectby cursor_to_xml cursor_to_xmlschema crosstab crosstab2 crosstab3 crosstab4 crosstab_hash dblink"
    " dblink_exec dblink_open dblink_send_query query_to_xml query_to_xml_and_xmlschema query_to_xmlschema ts_rewrite"
    " ts_stat xpath_table"
)
_RUN_TEXTS: Final = frozenset(_TEXT_RUNNERS.split())
"""Functions that run a text as SQL, which nobody would have looked at. Some of them are declared stable."""


@record
class Calls:
    """The names of functions that a statement calls, and of fields it reads, as PostgreSQL writes both in one way.

    `('/etc/passwd'::text).pg_read_file` is a call.
    """

    functions: frozenset[str]
    fields: frozenset[str]


@lru_cache(maxsize=512)
def check_query(sql: str) -> Calls:
    """Make sure that a statement only reads, as far as its text tells. Raises ToolError."""
    functions: set[str] = set()
    fields: set[str] = set()
    for kind, node in _nodes(_parse(sql)):
        if (kind.endswith("Stmt") and kind not in _READING) or kind in ("IntoClause", "LockingClause"):
            raise ToolError(f"query only reads, and {_words(kind)} does not; execute, with readOnly: false, takes it")
        if kind == "FuncCall":
            functions.update(_last_name(node, "funcname"))
        elif kind == "A_Indirection":
            fields.update(_names(node, "indirection"))
        elif kind == "ColumnRef":
            fields.update(_last_name(node, "fields") if len(_list(node, "fields")) > 1 else ())
    running = sorted(_RUN_TEXTS & (functions | fields))
    if running:
        raise ToolError(f"query does not call {running[0]}, which runs a text as SQL")
    return Calls(frozenset(functions), frozenset(fields))


@lru_cache(maxsize=512)
def check_explain(sql: str) -> None:
    """Make sure that a statement has a plan and is not run. Raises ToolError."""
    kind = _kind(_parse(sql))
    if kind not in _PLANNED:
        raise ToolError(f"explain takes a SELECT, INSERT, UPDATE, DELETE or MERGE, not {_words(kind)}")


@lru_cache(maxsize=512)
def check_execute(sql: str) -> None:
    """Make sure that a statement is one, and is over when its call is. Raises ToolError."""
    kind = _kind(_parse(sql))
    if kind in _OF_SESSION:
        raise ToolError(f"execute does not take {_words(kind)}: {_OF_SESSION[kind]}")


def _parse(sql: str) -> ParseResult:
    """The tree of a single statement. Raises ToolError."""
    from google.protobuf.message import DecodeError
    from postgast import PgQueryError, parse

    try:
        tree = parse(sql)
    except PgQueryError as error:
        place = max(error.cursorpos - 1, 0)
        around = " ".join(sql[max(0, place - 20) : place + 40].split())
        raise ToolError(f"{error.message}{f' (`{around}`)' if around else ''}") from None
    except DecodeError:
        raise ToolError("the statement is nested too deeply to be looked at") from None
    if len(tree.stmts) != 1:
        raise ToolError(f"one statement at a time; there are {len(tree.stmts)}")
    return tree


def _kind(tree: ParseResult) -> str:
    return _type(next(child for field, child in _nodes(tree) if field.endswith("Stmt") and field != "RawStmt"))


def _nodes(tree: Message) -> Iterable[tuple[str, Message]]:
    """All nodes with the names of their types, from the top."""
    from postgast import walk

    return ((_type(node), node) for _, node in walk(tree))


def _type(node: Message) -> str:
    return node.DESCRIPTOR.name


def _list(node: Message, field: str) -> list[Message]:
    return list(getattr(node, field))


def _names(node: Message, field: str) -> list[str]:
    """The texts in a list of nodes."""
    from postgast.walk import unwrap_node

    inner = (unwrap_node(child) for child in _list(node, field))
    return [str(getattr(child, "sval", "")) for child in inner if _type(child) == "String"]


def _last_name(node: Message, field: str) -> list[str]:
    return _names(node, field)[-1:]


def _words(kind: str) -> str:
    """A kind of statement as one writes it: `DeleteStmt` as DELETE."""
    if kind in _WORDS:
        return _WORDS[kind]
    bare = kind.removesuffix("Stmt")
    return "".join(f" {c}" if c.isupper() and i else c for i, c in enumerate(bare)).upper()
