"""Which browser is started, and how."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from halo_runtime.tools.shell.environment import harmless

NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
"""The command of a browser that can be driven, in the order in which they are looked for."""

INSTALL: Final = "`apt install chromium`, or `playwright install chromium`"
"""How to get one."""

ARGUMENTS: Final = (
    # Nothing but the proxy is ever connected to: names are not looked up here, and calls between browsers (WebRTC) and
    # QUIC, which would go around a proxy, are off.
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-quic",
    "--disable-gpu",
    "--deny-permission-prompts",
)
KEPT_DEFAULTS: Final = ("--disable-popup-blocking", "--disable-ipc-flooding-protection")
"""What Playwright would switch off and pages had better not be without: the limits on windows and on floods."""

NOWHERE: Final = "http://127.0.0.1:1"
"""A proxy that is none: only root could listen there."""

_MAC: Final = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
_DISPLAY: Final = ("DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")
_DOWNLOADED: Final = (
    "chromium-*/chrome-linux*/chrome",
    "chromium-*/chrome-mac*/*.app/Contents/MacOS/*",
    "chromium_headless_shell-*/*/*headless?shell",
)


def find_browser(env: Mapping[str, str]) -> Path | None:
    """A browser on the PATH, in its usual place, or downloaded by Playwright."""
    on_path = (shutil.which(name, path=env.get("PATH")) for name in NAMES)
    usual = (shutil.which(path) for path in _MAC)
    found = next((path for path in (*on_path, *usual) if path is not None), None)
    return Path(found) if found is not None else next(_downloaded(env), None)


def browser_variables(env: Mapping[str, str], outside: Mapping[str, str]) -> dict[str, str | float | bool]:
    """The variables that the browser sees: the harmless ones of `outside`, where windows are shown, and `env`."""
    return {**harmless(outside), **{name: outside[name] for name in _DISPLAY if name in outside}, **env}


def needs_no_sandbox() -> bool:
    """Whether Chromium's own sandbox must be off: it does not start with one as root."""
    return os.geteuid() == 0


def _downloaded(env: Mapping[str, str]) -> Iterator[Path]:
    """What `playwright install` has downloaded, the newest first."""
    home = Path(env.get("HOME") or Path.home())
    named = os.environ.get("PLAYWRIGHT_BROWSERS_PATH", "")
    usual = (home / ".cache/ms-playwright", home / "Library/Caches/ms-playwright")
    for folder in (Path(named), *usual) if len(named) > 1 else usual:
        for pattern in _DOWNLOADED:
            yield from sorted(folder.glob(pattern), reverse=True)
