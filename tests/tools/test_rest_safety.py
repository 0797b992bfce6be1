"""Where REST may not go: closed addresses in every spelling, redirects to them, names that change, paths that climb."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpcore
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halo_runtime.errors import ConfigError, ToolError
from halo_runtime.tools.base import ToolConfig
from halo_runtime.tools.rest import Api, open_rest
from halo_runtime.tools.web.addresses import AllowedHosts, why_closed
from halo_runtime.tools.web.client import MAX_REDIRECTS, WebRequest, redirected
from halo_runtime.tools.web.network import GuardedNetwork
from halo_runtime.tools.web.urls import declared_url, joined, same_origin
from tests.fakes.wire import Answer
from tests.tools.test_rest import Echo

PUBLIC = "93.184.216.34"


@pytest.fixture
async def server() -> AsyncIterator[Echo]:
    async with Echo() as echo:
        yield echo


def api(base: str, **settings: Any) -> Api:
    return open_rest(ToolConfig("Api", "REST", {"base": base, **settings}, Path()))


async def get(tool: Api, **args: Any) -> Any:
    try:
        return await tool.call("get", args)
    finally:
        await tool.close()


# --- addresses --------------------------------------------------------------------------------------------------------

LOOPBACK = [
    "127.0.0.1", "127.1", "2130706433", "0x7f.1", "0x7f000001", "0177.0.0.1", "017700000001", "127.255.255.254", "0",
    "0.0.0.0", "localhost", "LOCALHOST", "localhost.", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]",
    "[::127.0.0.1]", "[64:ff9b::7f00:1]", "127。0。0。1", "１２７.0.0.1", "①②⑦.0.0.1",
]  # fmt: skip
PRIVATE = [
    "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "2852039166", "100.64.0.1", "100.100.100.200",
    "168.63.129.16", "192.0.0.192", "198.18.0.1", "224.0.0.1", "255.255.255.255", "240.0.0.1", "[fe80::1]", "[fec0::1]",
    "[fd00:ec2::254]", "[ff02::1]", "[64:ff9b::a9fe:a9fe]", "[64:ff9b:1::1]", "[::ffff:10.0.0.1]", "[2002:7f00:1::]",
    "[2001:0:7f00:1::]", "[2001:db8::1]",
]  # fmt: skip


@pytest.mark.parametrize("host", [*LOOPBACK, *PRIVATE])
async def test_no_spelling_of_a_closed_address_is_connected_to(server: Echo, host: str) -> None:
    with pytest.raises(ToolError, match=r"which tools do not connect to by themselves|leads nowhere|cannot be asked"):
        await get(api(f"http://{host}:{server.port}"))
    assert server.connections == 0


@pytest.mark.parametrize("host", ["127.0.0.1", "2130706433", "localhost", "[::ffff:127.0.0.1]", "10.0.0.1"])
async def test_a_closed_address_is_named_with_what_to_do(server: Echo, host: str) -> None:
    with pytest.raises(ToolError, match=r"is at .* \(.*\), which tools do not .*allowHosts: \["):
        await get(api(f"http://{host}:{server.port}"))


@pytest.mark.parametrize(
    ("host", "allowed"),
    [("127.0.0.1", "127.0.0.1"), ("localhost", "LocalHost."), ("127.0.0.1", "127.0.0.1:{port}"), ("127.1", "127.1")],
)
async def test_a_host_that_the_declaration_names_may_be_reached(server: Echo, host: str, allowed: str) -> None:
    hosts = [allowed.format(port=server.port)]
    assert (await get(api(f"http://{host}:{server.port}", allowHosts=hosts)))["status"] == 200


@pytest.mark.parametrize("allowed", ["127.0.0.2", "localhost", "127.0.0.1:1", "0.0.1", "*", ""])
async def test_naming_another_host_allows_nothing(server: Echo, allowed: str) -> None:
    with pytest.raises(ToolError, match="by themselves"):
        await get(api(server.address, allowHosts=[allowed]))


def test_a_bracketed_address_may_be_named_with_and_without_brackets() -> None:
    for entry in ("::1", "[::1]", "[::1]:80"):
        assert AllowedHosts.of([entry]).include("::1", 80), entry


@pytest.mark.parametrize("address", [PUBLIC, "1.1.1.1", "2606:4700::1111", "64:ff9b::101:101", "::ffff:1.1.1.1"])
def test_public_addresses_are_open(address: str) -> None:
    assert why_closed(address) is None


@given(st.ip_addresses(v=4), st.sampled_from(["::ffff:", "64:ff9b::"]))
def test_an_address_is_as_closed_inside_another_as_by_itself(address: Any, prefix: str) -> None:
    assert why_closed(f"{prefix}{address}") == why_closed(str(address))


SPECIAL = [
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
    "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
    "224.0.0.0/4", "240.0.0.0/4", "::/96", "64:ff9b:1::/48", "100::/64", "100:0:0:1::/64", "2001::/23", "2001:db8::/32",
    "2002::/16", "3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
]  # fmt: skip
"""IANA's registries of special-purpose addresses, which versions of `ipaddress` know in part, and groups."""


@given(st.sampled_from(SPECIAL).flatmap(lambda network: st.ip_addresses(network=network)))
def test_no_special_purpose_address_is_open(address: Any) -> None:
    assert why_closed(str(address)) is not None


@given(st.ip_addresses())
def test_nothing_is_open_that_is_not_global(address: Any) -> None:
    if not address.is_global and getattr(address, "ipv4_mapped", None) is None and address.packed[:4] != b"\0d\xff\x9b":
        assert why_closed(str(address)) is not None


# --- names that change ------------------------------------------------------------------------------------------------


class Line(httpcore.AsyncNetworkBackend):
    """Notes what is connected to, and connects to nothing."""

    def __init__(self) -> None:
        self.addresses: list[str] = []

    async def connect_tcp(self, host: str, *_: Any, **__: Any) -> httpcore.AsyncNetworkStream:
        self.addresses.append(host)
        raise httpcore.ConnectError(f"no line to {host}")


class Names:
    """A resolver that gives other addresses each time."""

    def __init__(self, *answers: list[str]) -> None:
        self._answers = list(answers)

    async def __call__(self, host: str, port: int) -> list[str]:
        return self._answers.pop(0)


async def test_the_address_that_was_looked_at_is_the_one_connected_to() -> None:
    line, names = Line(), Names([PUBLIC], ["127.0.0.1"])
    network = GuardedNetwork(AllowedHosts(), names, line)
    with pytest.raises(httpcore.ConnectError):
        await network.connect_tcp("rebinding.example", 80)
    with pytest.raises(ToolError, match="is at 127"):
        await network.connect_tcp("rebinding.example", 80)
    assert line.addresses == [PUBLIC]


async def test_one_closed_address_closes_its_host() -> None:
    line = Line()
    with pytest.raises(ToolError, match="is at 10"):
        await GuardedNetwork(AllowedHosts(), Names([PUBLIC, "10.0.0.1"]), line).connect_tcp("mixed.example", 443)
    assert line.addresses == []


async def test_every_address_of_a_host_is_tried_in_order() -> None:
    line = Line()
    with pytest.raises(httpcore.ConnectError, match=r"no line to 1\.1\.1\.1"):
        await GuardedNetwork(AllowedHosts(), Names([PUBLIC, "1.1.1.1"]), line).connect_tcp("two.example", 443)
    assert line.addresses == [PUBLIC, "1.1.1.1"]


async def test_a_name_is_looked_up_for_each_connection_and_its_answer_is_used(server: Echo) -> None:
    config = ToolConfig(
        "Api", "REST", {"base": f"http://svc.example:{server.port}", "allowHosts": ["svc.example"]}, Path()
    )
    tool = open_rest(config, Names(["127.0.0.1"]))
    assert (await get(tool))["status"] == 200
    assert server.requests[0].headers["host"] == f"svc.example:{server.port}"


# --- redirects --------------------------------------------------------------------------------------------------------


def to(location: str, status: int = 302) -> Answer:
    return Answer(status, headers={"location": location})


def keyed(server: Echo, *hosts: str) -> Api:
    return api(server.address, allowHosts=["127.0.0.1", *hosts], apiKey="key-1", headers=["X-Mine: 1"])


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_at_the_same_origin_is_followed_with_the_key(server: Echo, status: int) -> None:
    server.answer(to("/new?a=1", status))
    assert (await get(keyed(server), path="/old"))["body"]["path"] == "/new?a=1"
    assert [sent.headers.get("authorization") for sent in server.requests] == ["Bearer key-1"] * 2


async def test_keys_and_headers_stay_behind_where_the_origin_changes(server: Echo) -> None:
    async with Echo() as other:
        server.answer(to(f"{other.address}/there"))
        await get(keyed(server), headers={"X-Call": "1"})
    sent = other.requests[0].headers
    assert {"authorization", "x-mine", "x-call"}.isdisjoint(sent)
    assert {"authorization", "x-mine", "x-call"} <= server.requests[0].headers.keys()


@pytest.mark.parametrize(
    "location", ["http://169.254.169.254/latest", "http://localhost:{port}/", "http://[::1]/", "//0/"]
)
async def test_a_redirect_to_a_closed_address_is_not_followed(server: Echo, location: str) -> None:
    server.answer(to(location.format(port=server.port)))
    with pytest.raises(ToolError, match="do not connect to by themselves"):
        await get(keyed(server))
    assert len(server.requests) == 1


@pytest.mark.parametrize("location", ["file:///etc/passwd", "ftp://x.example/", "http://u:p@127.0.0.1/", "data:,x"])
async def test_a_redirect_to_what_is_no_plain_address_is_not_followed(server: Echo, location: str) -> None:
    server.answer(to(location))
    with pytest.raises(ToolError, match="no plain http or https address"):
        await get(keyed(server))


async def test_redirects_end(server: Echo) -> None:
    server.answer(*[to("/again")] * 9)
    with pytest.raises(ToolError, match="redirects more than 5 times"):
        await get(keyed(server))
    assert len(server.requests) == MAX_REDIRECTS + 1


@pytest.mark.parametrize("status", [307, 308])
async def test_a_body_is_sent_again_at_the_same_origin_only(server: Echo, status: int) -> None:
    server.answer(to("/new", status))
    tool = keyed(server)
    assert (await tool.call("post", {"json": {"a": 1}}))["body"]["body"] == {"a": 1}
    async with Echo() as other:
        server.answer(to(f"{other.address}/new", status))
        with pytest.raises(ToolError, match="set the declaration to the final address"):
            await tool.call("post", {"json": {"a": 1}})
        assert other.connections == 0
    await tool.close()


async def test_a_post_becomes_a_get_only_where_the_server_says_so(server: Echo) -> None:
    server.answer(to("/made", 303))
    tool = keyed(server)
    assert (await tool.call("post", {"json": 1}))["body"] == {"method": "GET", "path": "/made", "body": None}
    server.answer(to("/made", 302))
    with pytest.raises(ToolError, match="answered 302 and redirects a POST"):
        await tool.call("post", {"json": 1})
    await tool.close()


@pytest.mark.parametrize(
    ("here", "there", "kept"),
    [
        ("http://a.example/x", "https://a.example/y", True),
        ("https://a.example/x", "https://a.example:443/y", True),
        ("https://a.example/x", "https://a.example:444/y", False),
        ("https://a.example/x", "https://b.a.example/y", False),
        ("http://a.example:8080/x", "https://a.example/y", False),
    ],
)
def test_headers_go_along_to_the_same_origin_and_to_its_https(here: str, there: str, kept: bool) -> None:
    request = WebRequest("Api.get", "GET", here, {"authorization": "x"})
    assert ("authorization" in redirected(request, 302, there).headers) is kept


def test_a_redirect_from_https_to_http_is_not_followed() -> None:
    with pytest.raises(ToolError, match="read along"):
        redirected(WebRequest("Api.get", "GET", "https://a.example/"), 302, "http://a.example/")


# --- paths ------------------------------------------------------------------------------------------------------------

BASE = "https://api.example.com/v1"


@pytest.mark.parametrize(
    "path",
    [
        "..", "../x", "/a/../../x", "%2e%2e/x", "a/%2E%2e", "%252e%252e/x", "..;/x", "a/..%2fx", "a%2f..%2f..%2fx", ".",
        "a\\..\\x", "//evil.example", "\\\\evil.example", "https://evil.example/", "HTTP://evil.example",
        "file:///etc/passwd", "https://api.example.com/v2", "https://api.example.com/v1x", "https://u@api.example.com/v1",
        "https://api.example.com/v1/../x", "http://api.example.com/v1/x", "https://api.example.com:444/v1/x", "a\r\nb",
        "a\0b", "a#b", "https://api.example.com.evil.example/v1/x",
    ],
)  # fmt: skip
def test_a_path_that_would_leave_the_base_is_refused(path: str) -> None:
    with pytest.raises(ToolError):
        joined(BASE, path)


@pytest.mark.parametrize(
    ("path", "url"),
    [
        ("", ""), ("/", "/"), ("items", "/items"), ("/items/7", "/items/7"), ("/a b/é", "/a%20b/%C3%A9"),
        ("/a%2Fb", "/a%2Fb"), ("/x?a=1&b=é", "/x?a=1&b=%C3%A9"), ("/p:run", "/p:run"), ("/@me", "/@me"),
        ("/...", "/..."), ("/.well-known/x", "/.well-known/x"), ("/x?u=../y", "/x?u=../y"),
        ("https://api.example.com/v1/items?page=2", "/items?page=2"), ("https://api.example.com:443/v1/x", "/x"),
    ],
)  # fmt: skip
def test_paths_below_the_base(path: str, url: str) -> None:
    assert joined(BASE, path) == BASE + url


@given(st.text(st.sampled_from("abc./%2eEfF5\\:@?#;é ") | st.characters(), max_size=12))
def test_whatever_the_path_the_request_stays_below_the_base(path: str) -> None:
    import httpx

    try:
        url = httpx.URL(joined(BASE, path))
    except ToolError:
        return
    assert same_origin(str(url), BASE)
    assert url.raw_path.startswith(b"/v1")
    assert url.raw_path[3:4] in (b"", b"/", b"?")


@pytest.mark.parametrize(
    ("written", "url"),
    [
        ("api.example.com/v1", "https://api.example.com/v1"),
        (" https://x.example/ ", "https://x.example"),
        ("http://localhost:3000", "http://localhost:3000"),
        ("localhost:3000/a/", "https://localhost:3000/a"),
    ],
)
def test_a_base_without_a_scheme_means_https(written: str, url: str) -> None:
    assert declared_url(written, "the base") == url


@pytest.mark.parametrize(
    "written",
    ["", "https://", "ftp://x.example", "https://u:p@x.example", "https://u@x.example", "https://x.example/#a",
     "https://x.example?a=1", "https://x.example/a/../b", "https://x.example:99999", "https://x.example/a b",
     "https://x.example\r\n/a", "javascript:alert(1)", "https://[::1"],
)  # fmt: skip
def test_what_is_no_base_is_refused(written: str) -> None:
    with pytest.raises(ConfigError):
        declared_url(written, "the base")
