"""Providers that hold data: KV, File, VectorStore, PostgreSQL and SQL (spec 5 and 12.5)."""

from __future__ import annotations

from halo_lang.catalog.signature import Method, Signature, optional, required
from halo_lang.catalog.specs import ProviderSpec

_KEY = required("key", "string", "The entry's key.")

KV = ProviderSpec(
    "KV",
    Signature(
        (
            optional("path", "string", "The database file; relative to the program's folder."),
            optional("namespace", "string", "Keeps the keys of several stores in one file apart."),
        )
    ),
    (
        Method("get", Signature((_KEY,)), "the value, null when there is none", doc="Read a value.",
               example='Memory.get("color")'),
        Method(
            "set",
            Signature((_KEY, required("value", doc="Any JSON value."), optional("ttl", "duration", "When it goes.",
                                                                               positive=True))),
            "the value",
            effect="write",
            doc="Store a value.",
            example='Memory.set("color", "red", ttl: 1h)',
        ),
        Method("delete", Signature((_KEY,)), "true when there was one", effect="destructive", doc="Remove a value.",
               example='Memory.delete("color")'),
        Method(
            "list",
            Signature(
                (
                    optional("prefix", "string", "What the keys begin with."),
                    optional("limit", "integer", "How many entries at most.", default=100, minimum=1),
                    optional("cursor", "string", "Where the page before ended."),
                )
            ),
            "{items: [{key, value}], cursor}",
            doc="List entries in order of their keys.",
            example='Memory.list("user/")',
        ),
        Method(
            "incr",
            Signature((_KEY, optional("by", "number", "How much to add.", default=1))),
            "the new number",
            effect="write",
            idempotent=False,
            doc="Add to a number in one step; nothing counts as 0.",
            example='Memory.incr("visits")',
        ),
        Method(
            "cas",
            Signature((_KEY, required("expected", doc="What must stand there; null for nothing."),
                       required("value", doc="What to put there."))),
            "true when it was set",
            effect="write",
            idempotent=False,
            doc="Set a value only if another stands there now.",
            example='Memory.cas("state", "new", "seen")',
        ),
    ),
    "A store of JSON values by key, in one file.",
    'store Memory : KV("memory.db")',
)  # fmt: skip

FILE = ProviderSpec(
    "File",
    Signature(
        (
            required("path", "string", "The history's file; relative to the program's folder."),
            optional("maxTurns", "integer", "How many turns go into a prompt.", minimum=1),
            optional("maxTokens", "integer", "How many tokens of history go into a prompt.", minimum=1),
        )
    ),
    (
        Method(
            "append",
            Signature((required("text", "string", "What was said."),
                       optional("role", "string", "Who said it.", default="user", choices=("user", "assistant")),
                       optional("reply", "string", "The answer, kept in one piece with it."),
                       optional("id", "string", "What is there under this id is not added again."))),
            "the number of turns",
            effect="write",
            idempotent=False,
            doc="Add a turn, or a question and its answer.",
            example='Chat.append("hello")',
        ),
        Method(
            "read",
            Signature((optional("limit", "integer", "The last so many turns.", minimum=1),
                       optional("ids", "boolean", "Tell the id of what was added under one, too.", default=False))),
            "[{role, text}]",
            doc="Read the conversation.",
            example="Chat.read()",
        ),
        Method("clear", Signature(), "null", effect="destructive", doc="Forget the conversation.",
               example="Chat.clear()"),
    ),
    "A conversation history; an agent that equips it goes on where it was.",
    'store Chat : File("chat.jsonl", maxTurns: 20)',
    unasked=("append", "clear"),
)  # fmt: skip

_ID = required("id", "string", "The entry's id.")

VECTOR_STORE = ProviderSpec(
    "VectorStore",
    Signature(
        (
            optional("namespace", "string", "Keeps the entries of several stores apart.", default="default"),
            optional("path", "string", "The index file, vectors.db when left out; relative to the program's folder."),
            optional("k", "integer", "How many matches.", default=5, minimum=1, maximum=100),
            optional("minScore", "number", "The lowest score of a match.", minimum=-1, maximum=1),
            optional("model", "string", "An embedding model such as ollama/nomic-embed-text; else an offline one."),
        )
    ),
    (
        Method(
            "add",
            Signature((required("text", "string", "The entry."),
                       optional("id", "string", "Its id; made of the text when left out."),
                       optional("metadata", "any", "Fields to filter by: an object, or a text with JSON."))),
            "the id",
            effect="write",
            doc="Add an entry, or replace the one with that id.",
            example='Docs.add("Refunds take five days.", id: "refunds")',
        ),
        Method(
            "addMany",
            Signature((required("items", "list", "Texts, or objects {text, id, metadata}."),)),
            "the ids",
            effect="write",
            doc="Add many entries at once.",
            example="Docs.addMany(pages)",
        ),
        Method(
            "search",
            Signature((required("query", "string", "What to look for."),
                       optional("k", "integer", "How many matches.", minimum=1, maximum=100),
                       optional("filter", "any", "Metadata that must be equal: an object, or a text with JSON."))),
            "[{id, text, score, metadata}], best first",
            doc="Find the closest entries.",
            example='Docs.search("{{question}}", k: 3)',
        ),
        Method("get", Signature((_ID,)), "{id, text, metadata}, null when there is none", doc="Read an entry.",
               example='Docs.get("refunds")'),
        Method("delete", Signature((_ID,)), "true when there was one", effect="destructive", doc="Remove an entry.",
               example='Docs.delete("refunds")'),
        Method("count", Signature(), "how many entries", doc="Count the entries.", example="Docs.count()"),
        Method(
            "ingest",
            Signature((required("path", "string", "A file or folder; relative to the program's folder."),)),
            "{files, entries, removed, skipped: [{path, reason}]}",
            effect="write",
            doc="Cut documents into entries, in place of those of their former versions.",
            example='Docs.ingest("handbook")',
        ),
    ),
    "Texts found by meaning; an agent that equips it gets the best matches of each input.",
    'store Docs : VectorStore(namespace: "docs")',
    extra="vectors",
)  # fmt: skip

_STATEMENT = required(
    "sql", "string", "One statement, with %s or %(name)s where values go; they never go into the text.", code=True
)
_PARAMS = optional("params", "any", "The values: a list for %s, an object for %(name)s.")
_SQL_CONFIG = Signature(
    (
        required("url", "string", "Where the database is: postgresql://user:password@host/database."),
        optional("readOnly", "boolean", "Refuse whatever would write.", default=True, named_only=True),
        optional(
            "timeout", "duration", "The longest time for a statement.", default="30s", positive=True, named_only=True
        ),
        optional("maxRows", "integer", "Where long results are cut.", default=1000, minimum=1, named_only=True),
    )
)
_SQL_METHODS = (
    Method("query", Signature((_STATEMENT, _PARAMS)), "a list of rows as objects",
           doc="Read rows; nothing else is let through.",
           example='CoreDB.query("select * from users where id = %s", [id])'),
    Method("execute", Signature((_STATEMENT, _PARAMS)), "{rowCount}, and rows where it gives some",
           effect="destructive", idempotent=False, doc="Change rows; needs readOnly: false.",
           example='CoreDB.execute("delete from jobs where done")'),
    Method("schema", Signature((optional("table", "string", "Only this table."),)), "[{table, kind, columns}]",
           doc="List tables and columns.", example="CoreDB.schema()"),
    Method("explain", Signature((_STATEMENT, _PARAMS)), "the plan as text",
           doc="Show how a statement would run; it is not run.",
           example='CoreDB.explain("select * from users")'),
)  # fmt: skip

POSTGRESQL = ProviderSpec(
    "PostgreSQL",
    _SQL_CONFIG,
    _SQL_METHODS,
    "A PostgreSQL database.",
    "tool CoreDB : PostgreSQL(Env.DATABASE_URL)",
    extra="postgres",
    changes_if=("readOnly", False),
)
SQL = ProviderSpec(
    "SQL",
    _SQL_CONFIG,
    _SQL_METHODS,
    "A PostgreSQL database, or an SQLite file by `sqlite:///file`.",
    'tool CoreDB : SQL("sqlite:///data.db")',
    extra_where=("postgres", "url", "postgres"),
    changes_if=("readOnly", False),
)

PROVIDERS: tuple[ProviderSpec, ...] = (KV, FILE, VECTOR_STORE, POSTGRESQL, SQL)
