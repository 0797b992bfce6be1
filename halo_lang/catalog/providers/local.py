"""Providers that work on this machine: Workspace, Bash, Code, Documents (spec 5 and 12.5)."""

from __future__ import annotations

from halo_lang.catalog.signature import Method, Signature, optional, required
from halo_lang.catalog.specs import ProviderSpec

_PATH = required("path", "string", "A path inside the root.")
_TEXT = required("text", "string", "The text.")
_GLOB = optional("glob", "string", "Only names that match, such as `**/*.py`.")

WORKSPACE = ProviderSpec(
    "Workspace",
    Signature(
        (
            required("root", "string", "The folder; nothing outside it is ever touched."),
            optional("write", "boolean", "Allow changes.", default=False, named_only=True),
            optional("deny", "list", "Globs that stay closed.", items="string", named_only=True),
        )
    ),
    (
        Method(
            "read",
            Signature((_PATH, optional("start", "integer", "The first line, from 1.", minimum=1),
                       optional("end", "integer", "The last line.", minimum=1))),
            "the text",
            doc="Read a text file.",
            example='Room.read("notes.txt")',
        ),
        Method("write", Signature((_PATH, _TEXT)), "{path, bytes}", effect="write", doc="Write a file whole.",
               example='Room.write("notes.txt", text)'),
        Method(
            "edit",
            Signature((_PATH, required("old", "string", "What stands there, exactly once."),
                       required("new", "string", "What to put there."))),
            "{path, line}",
            effect="write",
            idempotent=False,
            doc="Replace one passage.",
            example='Room.edit("a.txt", old: "one", new: "two")',
        ),
        Method("append", Signature((_PATH, _TEXT)), "{path, bytes}", effect="write", idempotent=False,
               doc="Add to the end of a file.", example='Room.append("log.txt", "done")'),
        Method("list", Signature((optional("path", "string", "A folder inside the root.", default="."), _GLOB)),
               "[{path, kind, size}]", doc="List a folder.", example="Room.list()"),
        Method("glob", Signature((required("pattern", "string", "Such as `**/*.md`."),)), "the paths",
               doc="Find files by name.", example='Room.glob("**/*.md")'),
        Method("search", Signature((required("pattern", "string", "A regular expression."), _GLOB)),
               "[{path, line, text}]", doc="Find lines.", example='Room.search("deadline", glob: "*.py")'),
        Method("move", Signature((_PATH, required("to", "string", "The new path."))), "{path}", effect="destructive",
               idempotent=False, doc="Move or rename a file.", example='Room.move("a.txt", "b.txt")'),
        Method("delete", Signature((_PATH,)), "true when there was one", effect="destructive", doc="Remove a file.",
               example='Room.delete("a.txt")'),
        Method("mkdir", Signature((_PATH,)), "{path}", effect="write", doc="Make a folder and those above it.",
               example='Room.mkdir("out")'),
        Method("stat", Signature((_PATH,)), "{path, kind, size, modified}, null when there is none",
               doc="Look at a file from outside.", example='Room.stat("a.txt")'),
        Method("applyPatch", Signature((required("patch", "string", "A unified diff."),)), "the changed paths",
               effect="write", idempotent=False, doc="Apply a patch, all of it or nothing.",
               example="Room.applyPatch(diff)"),
    ),
    "Files in one folder.",
    'tool Room : Workspace("room", write: true)',
    changes_if=("write", True),
)  # fmt: skip

BASH = ProviderSpec(
    "Bash",
    Signature(
        (
            optional("allow", "list", 'The commands that an agent may choose; "*" for any.', items="string"),
            optional("cwd", "string", "The folder to run in.", default="."),
            optional("timeout", "duration", "The longest time for a command.", default="60s", positive=True),
            optional("env", "list", 'More variables for commands: Env.NAME, "NAME", "NAME=value".', items="string"),
            optional("sandbox", "boolean", "Run commands in bubblewrap.", default=False),
        )
    ),
    (
        Method("run", Signature((required("command", "string", "The command, as one types it.", code=True),)),
               "{exitCode, stdout, stderr, timedOut}", effect="destructive", idempotent=False, doc="Run a command.",
               example='Shell.run("pytest -q")'),
    ),
    "Commands of this machine, with a scrubbed environment.",
    'tool Shell : Bash(allow: ["git", "pytest"])',
)  # fmt: skip

CODE = ProviderSpec(
    "Code",
    Signature(
        (
            optional("language", "string", "The language.", default="python", choices=("python",)),
            optional("sandbox", "string", "What runs it: Monty, a part of Python, or CPython in bubblewrap.",
                     default="monty", choices=("monty", "bubblewrap"), named_only=True),
            optional("timeout", "duration", "The longest time for a program.", default="10s", positive=True,
                     named_only=True),
            optional("memory", "integer", "Megabytes that a program may use.", default=256, minimum=16, maximum=65536,
                     named_only=True),
        )
    ),
    (
        Method("run", Signature((required("code", "string", "The program; its last line is the result.", code=True),
                                 optional("inputs", "object", "Its variables, by name.")), open_named=True),
               "{result, stdout, error}; error is null or {type, message, line}",
               doc="Run code without network or files; further arguments by name are its variables, too.",
               example='Calc.run("sum(xs)", xs: numbers)'),
    ),
    "Code in a sandbox without network or files.",
    'tool Calc : Code(language: "python")',
    extra="code",
)  # fmt: skip

DOCUMENTS = ProviderSpec(
    "Documents",
    Signature((required("root", "string", "The folder; nothing outside it is read."),)),
    (
        Method("read", Signature((_PATH,)), "{text, metadata}", doc="Read a document as Markdown.",
               example='Papers.read("contract.pdf")'),
        Method("pages", Signature((_PATH, optional("start", "integer", "The first page, from 1.", minimum=1),
                                   optional("end", "integer", "The last page.", minimum=1))),
               "[{page, text}]", doc="Read single pages.", example='Papers.pages("contract.pdf", start: 2, end: 3)'),
        Method("chunks", Signature((_PATH, optional("size", "integer", "Characters.", default=1000, minimum=1),
                                    optional("overlap", "integer", "Characters shared.", default=100, minimum=0))),
               "the texts", doc="Cut a document into overlapping pieces.", example='Papers.chunks("contract.pdf")'),
        Method("tables", Signature((_PATH,)), "a list of tables, each a list of rows", doc="Read the tables.",
               example='Papers.tables("prices.xlsx")'),
        Method("search", Signature((required("query", "string", "The words."), _GLOB)), "[{path, page, text}]",
               doc="Find passages.", example='Papers.search("liability")'),
    ),
    "pdf, docx, xlsx, pptx, html, md and csv as text.",
    'tool Papers : Documents("papers")',
    extra="documents",
)  # fmt: skip

PROVIDERS: tuple[ProviderSpec, ...] = (WORKSPACE, BASH, CODE, DOCUMENTS)
