"""What processes of tools see of the environment: never all of it, as it holds the keys of everything else."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from halo_runtime.errors import ConfigError

HARMLESS: Final = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TERM", "TZ", "TMPDIR")
"""Passed on always, as are the `LC_…` variables: what commands need to run and to write text."""

_NAME: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def harmless(env: Mapping[str, str]) -> dict[str, str]:
    """The part of an environment that every process may see."""
    return {name: value for name, value in env.items() if name in HARMLESS or name.startswith("LC_")}


def given_variable(text: str, env: Mapping[str, str]) -> tuple[str, str]:
    """The variable that an item of `env:` gives: "NAME" passes one of `env` on, "NAME=value" sets one.

    Raises ConfigError for what is no name, and for a variable that is not set.
    """
    name, sets, value = text.partition("=")
    if _NAME.fullmatch(name) is None:
        raise ConfigError(f'env: takes "NAME", "NAME=value" or Env.NAME, not "{text}"')
    if sets:
        return name, value
    if name not in env:
        raise ConfigError(f"the environment variable {name} is not set; set it, or name it with --env-file")
    return name, env[name]
