"""Where a program stands, for services that show findings beside the files of a repository."""

from __future__ import annotations

import os
from pathlib import PurePath


def repository_path(path: str) -> PurePath:
    """The path relative to the repository's root, else absolute.

    The root is what GitHub's runner says it is, elsewhere the current folder.
    """
    here = os.path.abspath(path)  # noqa: PTH100 - without following links: the repository has the link
    root = os.environ.get("GITHUB_WORKSPACE") or os.getcwd()  # noqa: PTH109
    pure = PurePath(here)
    return pure.relative_to(root) if pure.is_relative_to(root) else pure
