"""What tables there are, as `schema` gives them: `[{table, kind, columns: [{name, type, nullable, …}]}]`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from itertools import groupby
from typing import Any, Final

from halo_lang.records import record
from halo_runtime.json_types import Json, JsonObject

POSTGRES_TABLES: Final = """
select n.nspname::text, c.relname::text, c.relkind::text, pg_table_is_visible(c.oid),
  a.attname::text, format_type(a.atttypid, a.atttypmod), not a.attnotnull,
  exists (select from pg_catalog.pg_index i where i.indrelid = c.oid and i.indisprimary and a.attnum = any(i.indkey)),
  (select format('%s.%s', k.confrelid::regclass, f.attname) from pg_catalog.pg_constraint k
     join pg_catalog.pg_attribute f on f.attrelid = k.confrelid and f.attnum = k.confkey[1]
   where k.contype = 'f' and k.conrelid = c.oid and k.conkey = array[a.attnum] order by k.oid limit 1),
  col_description(c.oid, a.attnum)
from pg_catalog.pg_class c
  join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  left join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
where c.relkind in ('r', 'p', 'v', 'm', 'f') and not c.relispartition
  and n.nspname <> 'information_schema' and n.nspname !~ '^pg_'
  and has_schema_privilege(n.oid, 'USAGE') and has_any_column_privilege(c.oid, 'SELECT')
order by n.nspname, c.relname, a.attnum
"""

KINDS: Final = {"r": "table", "p": "table", "f": "table", "v": "view", "m": "view"}


@record
class Table:
    """`names` are those it can be asked for by, the one that is shown first."""

    names: tuple[str, ...]
    kind: str
    columns: list[Json]


def described(rows: Iterable[Sequence[Any]]) -> list[Table]:
    """The tables of PostgreSQL's rows, which come in order."""
    tables: list[Table] = []
    for (schema, name, kind, visible), columns in groupby(rows, lambda row: tuple(row[:4])):
        full = f"{schema}.{name}"
        names = (name, full) if visible else (full,)
        tables.append(Table(names, KINDS[kind], [column(*row[4:]) for row in columns if row[4] is not None]))
    return tables


def column(
    name: str, type_: str, nullable: bool, primary_key: bool, references: str | None, comment: str | None = None
) -> JsonObject:
    """One column; what does not hold is left out, but for `nullable`."""
    shown: JsonObject = {"name": name, "type": type_, "nullable": nullable}
    more: JsonObject = {"primaryKey": primary_key, "references": references, "comment": comment}
    return shown | {key: value for key, value in more.items() if value}


def unknown_table(wanted: str, tables: Sequence[Table]) -> str:
    """What to say of a table that is not there, with those much like it."""
    names = [name for table in tables for name in table.names[:1]]
    near = get_close_matches(wanted, names, n=3) or names[:10]
    return f"there is no table `{wanted}`; " + (f"there is {', '.join(near)}" if near else "there are none")
