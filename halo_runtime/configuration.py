"""What a project says of itself in `halo.toml`: prices, names for models, replies, where runs are kept (spec 8).

Reading is strict: a name that is not known may be a mistyped one, and a price that is not counted costs money.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import field
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn, Protocol

from halo_lang.records import record
from halo_lang.spelling import nearest
from halo_runtime.errors import ConfigError
from halo_runtime.json_types import Json, JsonObject, is_object

if TYPE_CHECKING:
    from halo_runtime.models.pricing import Price

FILE: Final = "halo.toml"
STORE: Final = ".halo"

REPLIES_VARIABLE: Final = "HALO_REPLIES"
STORE_VARIABLE: Final = "HALO_STORE"

_TABLES: Final = ("models", "prices", "keys")
_TEXTS: Final = ("replies", "store", "theme")
_PRICES: Final = {"input": "input", "output": "output", "cached": "cached", "cache_write": "cache_written"}
"""Key in the file → field of Price."""
_ALIAS: Final = re.compile(r"[A-Za-z][\w.-]*")
_REQUIRED: Final = ("input", "output")
_LARGEST: Final = Decimal(10) ** 6


class _Fail(Protocol):
    def __call__(self, problem: str, *keys: str) -> NoReturn:
        """Raise ConfigError for what is wrong at a key, inside the keys before it."""
        ...


@record
class Configuration:
    """What a file says. `aliases` are names for model ids; `replies` and `store` are paths as they can be opened.

    `keys` and `theme` are the workbench's and not looked into here.
    """

    folder: Path
    file: Path | None = None
    aliases: Mapping[str, str] = field(default_factory=dict[str, str])
    prices: Mapping[str, Price] = field(default_factory=dict[str, "Price"])
    replies: str | None = None
    store: Path | None = None
    keys: JsonObject = field(default_factory=dict[str, Json])
    theme: str | None = None

    def model(self, name: str) -> str:
        """The id that a name stands for; everything else stands for itself."""
        return self.aliases.get(name, name)


def find_folder(start: Path | None = None) -> Path:
    """The nearest folder upwards with a configuration file; without one the folder itself."""
    here = (start or Path()).absolute()
    return next((folder for folder in (here, *here.parents) if (folder / FILE).is_file()), here)


def configuration(start: Path | None = None, env: Mapping[str, str] = os.environ) -> Configuration:
    """That of the project around a folder, under what the environment says. ConfigError for a file that has errors."""
    folder = find_folder(start)
    file = folder / FILE
    found = Configuration(folder) if not file.is_file() else _read(file)
    replies, store = env.get(REPLIES_VARIABLE) or found.replies, env.get(STORE_VARIABLE)
    return Configuration(
        folder, found.file, found.aliases, found.prices, replies, Path(store) if store else found.store,
        found.keys, found.theme,
    )  # fmt: skip


def _read(file: Path) -> Configuration:
    try:
        text = file.read_bytes().decode("utf-8")
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{file} is no UTF-8 text; save it as UTF-8") from None
    return read_configuration(text, file)


def read_configuration(text: str, file: Path) -> Configuration:
    """What the text of a file says. ConfigError names the line and what to write instead."""
    import tomllib  # only projects with a file pay for it

    def fail(problem: str, *keys: str) -> NoReturn:
        line = _line_of(text, keys)
        raise ConfigError(f"{file}{f':{line}' if line else ''}: {problem}")

    try:
        document: JsonObject = tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        message, _, place = str(error).partition(" (at line ")
        at = f":{place.partition(',')[0]}" if place else ""
        raise ConfigError(f"{file}{at}: this is no TOML: {message}") from None
    _known(document, (*_TABLES, *_TEXTS), fail)
    texts = {name: _text(document[name], name, fail) for name in _TEXTS if name in document}
    tables = {name: _table(document[name], name, fail) for name in _TABLES if name in document}
    replies, store = texts.get("replies"), texts.get("store")
    return Configuration(
        file.parent,
        file,
        {name: _alias(name, model, fail) for name, model in tables.get("models", {}).items()},
        {model: _price(model, entry, fail) for model, entry in tables.get("prices", {}).items()},
        None if replies is None else str(file.parent / Path(replies).expanduser()),
        None if store is None else file.parent / Path(store).expanduser(),
        tables.get("keys", {}),
        texts.get("theme"),
    )


def _known(table: JsonObject, names: tuple[str, ...], fail: _Fail, *inside: str) -> None:
    for name in table:
        if name not in names:
            meant = nearest(name, names)
            advice = f"did you mean `{meant.name}`?" if meant else f"there are {', '.join(names)}"
            fail(f"unknown key `{name}`; {advice}", *inside, name)


def _text(value: Json, name: str, fail: _Fail) -> str:
    if not isinstance(value, str) or not value.strip():
        fail(f'`{name}` must be a text in quotes, such as {name} = "…"', name)
    return value


def _table(value: Json, name: str, fail: _Fail) -> JsonObject:
    if not is_object(value):
        fail(f"`{name}` must be a table; write [{name}] and its keys below it", name)
    return value


def _alias(name: str, model: Json, fail: _Fail) -> str:
    from halo_lang import catalog  # only projects with such tables pay for it

    if not _ALIAS.fullmatch(name) or catalog.model_route(name) is not None:
        fail(f"`{name}` cannot stand for a model; take a name such as fast, which is no model's own", "models", name)
    if not isinstance(model, str) or catalog.model_route(model) is None:
        fail(f'`{name}` must name a model with its service, such as {name} = "openai/gpt-5-mini"', "models", name)
    return model


def _price(model: str, entry: Json, fail: _Fail) -> Price:
    from halo_lang import catalog  # see `_alias`
    from halo_runtime.models.pricing import Price

    example = f'write [prices."{model}"] with input = 1.0 and output = 2.0, in US dollars for a million tokens'
    inside = ("prices", model)
    if not is_object(entry):
        fail(f'the price of "{model}" must be a table; {example}', *inside)
    if "/" not in model and catalog.model_route(model) is None:
        fail(f'"{model}" names no model; write its service too, such as [prices."openai/{model}"]', *inside)
    _known(entry, tuple(_PRICES), fail, *inside)
    for name in _REQUIRED:
        if name not in entry:
            fail(f'the price of "{model}" has no `{name}`; {example}', *inside)
    return Price(**{to: _dollars(entry[name], fail, *inside, name) for name, to in _PRICES.items() if name in entry})


def _dollars(value: Json, fail: _Fail, *keys: str) -> Decimal:
    number = Decimal(value) if isinstance(value, int | Decimal) and not isinstance(value, bool) else None
    if number is None or not number.is_finite() or not 0 <= number <= _LARGEST:
        name = keys[-1]
        fail(f"`{name}` must be a number of US dollars for a million tokens, such as {name} = 1.25", *keys)
    return number


def _line_of(text: str, keys: tuple[str, ...]) -> int | None:
    """The line of a key: each is looked for behind the one that it is in. None where it is written in another way."""
    at = line = 0
    for key in keys:
        written = re.compile(rf"""(?:^|[\[.{{,\s])["']?{re.escape(key)}["']?\s*[\].=]""", re.MULTILINE)
        found = written.search(text, at)
        if found is None:
            return None
        at = line = found.end() - 1
    return text.count("\n", 0, line) + 1
