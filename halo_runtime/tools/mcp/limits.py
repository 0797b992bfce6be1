"""How much of a server is taken in."""

from __future__ import annotations

from typing import Final

MAX_MESSAGE: Final = 16 << 20
"""Bytes of one message of a server."""
MAX_TEXT: Final = 1_000_000
"""Characters of a result's text that are kept."""
MAX_PAGES: Final = 100
MAX_TOOLS: Final = 1_000
MAX_DOC: Final = 1_000
"""Characters of a tool's description that models see; some services take no more than 1,024."""
MAX_SCHEMA: Final = 64_000
"""Characters of a tool's argument schema."""
EXIT_SECONDS: Final = 2.0
"""How long a server may take to end by itself once its stdin has ended."""
