"""Addresses of requests: what a declaration may say, and paths that cannot leave it. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import SplitResult, quote, unquote, urlencode, urlsplit

from halo_runtime.errors import ConfigError, ToolError
from halo_runtime.json_types import Json, is_list, is_object
from halo_runtime.values import text_of

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_IN_PATHS: Final = "/%:@!$&'()*+,;=~-._"
_IN_QUERIES: Final = _IN_PATHS + "?"


def declared_url(text: str, setting: str, *, query: bool = False) -> str:
    """The URL of a declaration, with https where it names no scheme and without a slash at its end.

    `setting` names the setting for ConfigError, which is raised for what is no plain http or https address. A query is
    refused unless `query`: a path could not be put behind it.
    """
    url = text.strip()
    url = url if _SCHEME.match(url) else f"https://{url}"
    parts = _parts(url)
    if parts is None or _UNPRINTABLE.search(url) or "\\" in url or " " in url:
        raise ConfigError(f"{setting} is no http or https address; write it like https://api.example.com/v1")
    if parts.username is not None or parts.password is not None:
        raise ConfigError(f"{setting} holds a user or a password, which would be shown; give a key or a header instead")
    if parts.fragment or url.endswith("#"):
        raise ConfigError(f"{setting} has a part behind #, which no server ever sees; leave it out")
    if parts.query and not query:
        raise ConfigError(f"{setting} has a query; leave it out, and give it to the calls with params:")
    if _climbs(parts.path):
        raise ConfigError(f"{setting} has `.` or `..` in its path; write the path that it leads to")
    return url if parts.query else url.rstrip("/?")


def host_of(url: str) -> str:
    """Host and port of a URL, as it is shown."""
    return urlsplit(url).netloc


def port_of(parts: SplitResult) -> int:
    """The port that a URL leads to."""
    return parts.port or (443 if parts.scheme == "https" else 80)


def same_origin(one: str, other: str) -> bool:
    """Whether two URLs lead to the same scheme, host and port."""
    a, b = urlsplit(one), urlsplit(other)
    return (a.scheme, a.hostname, port_of(a)) == (b.scheme, b.hostname, port_of(b))


def joined(base: str, path: str) -> str:
    """The URL of `path` below `base`. Raises ToolError for a path that would leave it.

    A path may have a query. A whole URL is taken where it lies below the base, as links to a next page do.
    """
    if _SCHEME.match(path):
        path = _below(base, path)
    if path.startswith("//") or "\\" in path or _UNPRINTABLE.search(path):
        raise ToolError("a path cannot begin with // or hold a backslash, a line break or control characters")
    if "#" in path:
        raise ToolError("a path has nothing behind a #; write %23 for the character itself")
    route, mark, query = path.partition("?")
    if _climbs(route):
        raise ToolError("a path cannot have `.` or `..` as a part: it would lead out of the tool's address")
    below = quote(route.removeprefix("/"), safe=_IN_PATHS)
    url = f"{base.removesuffix('/')}/{below}" if below or route else base
    return f"{url}?{quote(query, safe=_IN_QUERIES)}" if mark and query else url


def with_query(url: str, params: Json) -> str:
    """`url` with further query parameters: an object by name, or a text as it stands behind a `?`.

    A list gives one parameter for each of its items, null none. Raises ToolError for anything else.
    """
    if params is None:
        return url
    if is_object(params):
        added = urlencode([pair for name, value in params.items() for pair in _pairs(name, value)], errors="replace")
    elif isinstance(params, str) and not _UNPRINTABLE.search(params):
        added = quote(params.removeprefix("?"), safe=_IN_QUERIES)
    else:
        raise ToolError("params takes an object of values by name, or a text such as a=1&b=2")
    return f"{url}{'&' if '?' in url else '?'}{added}" if added else url


def _pairs(name: str, value: Json) -> Iterator[tuple[str, str]]:
    for item in value if is_list(value) else [value]:
        if item is not None:
            yield name, text_of(item)


def _parts(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return None
    return parts if usable else None


def _below(base: str, url: str) -> str:
    """What a whole URL adds to the base."""
    whole, own = _parts(url), urlsplit(base)
    path = own.path.rstrip("/")
    inside = whole is not None and same_origin(base, url) and f"{whole.path}/".startswith(f"{path}/")
    if whole is None or not inside or whole.username is not None:
        raise ToolError(f"the path is an address of its own, and not one below {host_of(base)}{path}; give a path")
    rest = whole.path[len(path) :]
    return f"{rest}?{whole.query}" if whole.query else rest


def _climbs(path: str) -> bool:
    """Whether a part of the path is `.` or `..`, also in the encodings that servers undo."""
    plain = path
    while (decoded := unquote(plain)) != plain:
        plain = decoded
    return any(part.partition(";")[0].strip() in (".", "..") for part in re.split(r"[/\\]", plain))
