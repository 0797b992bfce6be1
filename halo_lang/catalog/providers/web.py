"""Providers that reach out: REST, GET, POST, Browser, Chrome, MCP (spec 5)."""

from __future__ import annotations

from halo_lang.catalog.signature import Effect, Method, Signature, optional, required
from halo_lang.catalog.specs import ProviderSpec

_ALLOW_HOSTS = optional(
    "allowHosts",
    "list",
    "Private or local hosts that may be reached, as host or host:port.",
    items="string",
    named_only=True,
)
_HEADERS = optional(
    "headers", "any", 'Headers of every request, as ["Name: value", ["Name", Env.VALUE]].', named_only=True
)
_TIMEOUT = optional("timeout", "duration", "The longest time for a request.", default="30s", positive=True,
                    named_only=True)  # fmt: skip
_ALLOW_STATUS = optional(
    "allowStatus", "list", "Statuses of 400 and above that are results, not errors.", items="integer", named_only=True
)
_BASE = required("base", "string", "The base URL; https when it names no scheme.")
_API_KEY = optional("apiKey", "string", "Sent as a bearer token.", named_only=True, secret=True)
_REPLY = "{status, headers, body}"


def _request(name: str, effect: Effect, idempotent: bool, doc: str) -> Method:
    parameters = (
        optional("path", "string", "The path below the base."),
        optional("params", "any", "The query: an object by name, or a text."),
        optional("json", "any", "The body as JSON."),
        optional("data", "any", "The body: a text, or an object as a form."),
        optional("headers", "any", 'Headers of this request: an object, or a list of "Name: value".'),
    )
    return Method(name, Signature(parameters), _REPLY, effect, idempotent, doc, f'Api.{name}("/items")')


_READING = (
    _request("get", "read", True, "Send a GET request."),
    _request("head", "read", True, "Send a HEAD request."),
)
_WRITING = (
    _request("post", "write", False, "Send a POST request."),
    _request("put", "write", True, "Send a PUT request."),
    _request("patch", "write", False, "Send a PATCH request."),
    _request("delete", "destructive", True, "Send a DELETE request."),
)
_OPEN = Signature(open_named=True)

REST = ProviderSpec(
    "REST",
    Signature((_BASE, _API_KEY, _HEADERS, _TIMEOUT, _ALLOW_HOSTS, _ALLOW_STATUS)),
    (*_READING, *_WRITING),
    "An HTTP API.",
    'tool Api : REST("api.example.com/v1", apiKey: Env.API_KEY)',
    open_methods=Method("", _OPEN, _REPLY, doc="GET the path of that name, the arguments as its query.",
                        example='Api.weather(city: "Oslo")'),
)  # fmt: skip
GET = ProviderSpec(
    "GET",
    REST.config,
    _READING,
    "An HTTP API that is only read.",
    'tool Page : GET("https://example.com")',
    open_methods=REST.open_methods,
)
POST = ProviderSpec(
    "POST",
    Signature((required("url", "string", "Where to post."), _HEADERS, _TIMEOUT, _ALLOW_HOSTS,
               _ALLOW_STATUS)),
    (Method("post", _OPEN, _REPLY, "write", idempotent=False, doc="POST the arguments as a JSON object.",
            example='Hook.post(version: "1.2")'),),
    "An HTTP endpoint that takes JSON.",
    'tool Hook : POST("https://hooks.example.com/in")',
    open_methods=Method("", _OPEN, _REPLY, "write", idempotent=False, doc="POST the arguments as a JSON object.",
                        example='Hook.deployed(version: "1.2")'),
)  # fmt: skip


_SELECTOR = required("selector", "string", 'CSS, `text=Buy now`, or `role=button[name="Buy"]`; it names one element.')
_PART = optional("selector", "string", "As in click; the page when left out.")
_REFUSED = "refused are windows, downloads and addresses that the page wanted and did not get"

_PAGE_METHODS = (
    Method("goto", Signature((required("url", "string", "Where to go: http or https, https when it names neither."),)),
           "{url, title, status, refused}", doc=f"Open a page; {_REFUSED}.", example='Web.goto("https://example.com")'),
    Method("text", Signature((_PART,)), "the visible text",
           doc="Read what a person would see; text that the page hides is left out.", example="Web.text()"),
    Method("html", Signature((_PART,)), "the markup", doc="Read the markup, hidden parts too.",
           example='Web.html("main")'),
    Method("links", Signature(), "[{text, url}]", doc="List the visible links.", example="Web.links()"),
    Method("click", Signature((_SELECTOR,)), "{url, title, refused}", "write", False,
           "Click an element, and wait for what that loads.", 'Web.click("button.buy")'),
    Method("fill", Signature((_SELECTOR, required("value", "string", "The text."))), "null", "write", True,
           "Put a text into a field, in place of what is there.", 'Web.fill("#name", "Ada")'),
    Method("select", Signature((_SELECTOR, required("value", "string", "The option's text or value."))), "null",
           "write", True, "Choose an option.", 'Web.select("#size", "L")'),
    Method("press", Signature((required("key", "string", "Such as Enter or Control+a."),
                               optional("selector", "string", "The element to give the focus first."))),
           "{url, title, refused}", "write", False, "Press a key.", 'Web.press("Enter")'),
    Method("waitFor", Signature((_SELECTOR, optional("timeout", "duration", "How long, up to the tool's own timeout.",
                                                     positive=True))), "null",
           doc="Wait until an element can be seen.", example='Web.waitFor(".result")'),
    Method("screenshot", Signature((optional("path", "string", "A .png or .jpg in the program's folder.",
                                             default="screenshot.png"),
                                    optional("fullPage", "boolean", "The whole page.", default=False))),
           "{path, bytes, cut}", "write", True, "Take a picture.", 'Web.screenshot("page.png")'),
    Method("pdf", Signature((optional("path", "string", "A .pdf in the program's folder.", default="page.pdf"),)),
           "{path, bytes}", "write", True, "Print the page.", 'Web.pdf("page.pdf")'),
    Method("close", Signature(), "null", "write", True, "Close the page.", "Web.close()"),
)  # fmt: skip
_PAGE_TIMEOUT = optional("timeout", "duration", "The longest time for a call.", default="30s", positive=True,
                         named_only=True)  # fmt: skip

BROWSER = ProviderSpec(
    "Browser",
    Signature((optional("headless", "boolean", "Without a window.", default=True), _ALLOW_HOSTS, _PAGE_TIMEOUT)),
    _PAGE_METHODS,
    "A browser of its own.",
    "tool Web : Browser(headless: true)",
    extra="browser",
)
CHROME = ProviderSpec(
    "Chrome",
    Signature((optional("cdp", "string", "Its debugging address.", default="http://localhost:9222"), _ALLOW_HOSTS,
               _PAGE_TIMEOUT)),
    _PAGE_METHODS,
    "A window of its own in a Chrome that runs already.",
    'tool Web : Chrome("http://localhost:9222")',
    extra="browser",
)  # fmt: skip

MCP = ProviderSpec(
    "MCP",
    Signature(
        (
            required("server", "string", "A command, or the URL of a server.", aliases=("command", "url")),
            optional("args", "list", "The command's arguments.", items="string", named_only=True),
            optional("env", "list", 'More variables for the command: Env.NAME, "NAME", "NAME=value".', items="string",
                     named_only=True),
            _HEADERS,
            optional("tools", "list", "Only these tools of the server.", items="string", named_only=True),
            _TIMEOUT,
            _ALLOW_HOSTS,
            optional("pins", "string", "The file that keeps what the tools are, so that a change is noticed; "
                     ".halo/mcp/NAME.json when left out.", named_only=True),
        )
    ),
    (),
    "The tools of an MCP server, over stdio or HTTP.",
    'tool Files : MCP("npx", args: ["-y", "@modelcontextprotocol/server-filesystem", "."])',
    open_methods=Method("", _OPEN, "what the server answers", "write", idempotent=False,
                        doc="Call the server's tool of that name.", example='Files.read_file(path: "a.txt")'),
    extra="mcp",
    listed=True,
)  # fmt: skip

PROVIDERS: tuple[ProviderSpec, ...] = (REST, GET, POST, BROWSER, CHROME, MCP)
