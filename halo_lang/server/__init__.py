"""`halo lsp`: the language in any editor, over the Language Server Protocol.

    serve(version="1.0")

Diagnostics, completion, hover, signatures, navigation, rename, formatting, fixes and colours, all of them from the
pure functions of `halo_lang`. It needs the extra `lsp`; nothing else in `halo_lang` does input or output.
"""

from __future__ import annotations

from halo_lang.server.knowledge import Knowledge as Knowledge
from halo_lang.server.loop import serve as serve

__all__ = ["Knowledge", "serve"]
