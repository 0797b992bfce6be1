"""Which functions a query may call. The server says which of them may change something, or reach beyond the database.

PostgreSQL's `volatile` functions are those with effects: `nextval`, `pg_read_file`, `lo_export`, `dblink_exec`,
`pg_terminate_backend`, `set_config`, `pg_advisory_lock` and every function of a user that is not declared otherwise. A
read-only transaction keeps them from writing to tables, but from nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from halo_runtime.errors import ToolError
from halo_runtime.tools.sql.grammar import Calls

if TYPE_CHECKING:
    from halo_runtime.tools.sql.connections import Connection

_REPEATABLE: Final = (
    "clock_timestamp currval gen_random_uuid lastval pg_blocking_pids pg_current_wal_lsn pg_database_size"
    " pg_indexes_size pg_is_in_recovery pg_last_wal_receive_lsn pg_last_wal_replay_lsn pg_last_xact_replay_timestamp"
    " pg_partition_ancestors pg_partition_tree pg_relation_size pg_sequence_last_value pg_sleep pg_sleep_for"
    " pg_sleep_until pg_table_size pg_tablespace_size pg_total_relation_size pg_xact_status random random_normal"
    " timeofday txid_status uuid_generate_v1 uuid_generate_v1mc uuid_generate_v4 uuidv4 uuidv7"
)
_HARMLESS: Final = frozenset(_REPEATABLE.split())
"""Volatile only because their result differs from call to call."""

_FUNCTIONS: Final = """
select distinct proname::text from pg_catalog.pg_proc
where provolatile = 'v' and proname = any($1::name[])
"""
_FIELDS: Final = """
select distinct p.proname::text from pg_catalog.pg_proc p join pg_catalog.pg_type t on t.oid = p.proargtypes[0]
where p.provolatile = 'v' and p.proname = any($1::name[]) and t.typtype <> 'c'
"""
"""A field of a row may have the name of a function that takes such rows; one that takes other values is a call."""


class Functions:
    """What is known of the functions of one server."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], bool] = {}

    async def check(self, connection: Connection, calls: Calls) -> None:
        """Make sure that all of them only read. Raises ToolError."""
        for lookup, names in ((_FUNCTIONS, calls.functions - _HARMLESS), (_FIELDS, calls.fields - _HARMLESS)):
            unknown = [name for name in names if (lookup, name) not in self._known]
            if unknown:
                found = await (await connection.execute(lookup.encode(), [unknown])).fetchall()
                volatile = {row[0] for row in found}
                self._known.update({(lookup, name): name in volatile for name in unknown})
            refused = sorted(name for name in names if self._known[lookup, name])
            if refused:
                raise ToolError(
                    f"query does not call {refused[0]}: it is volatile, so it may change something or reach beyond the"
                    " database; execute, with readOnly: false, does, or declare the function stable"
                )
