"""Help with writing Halo: outline, navigation, rename, hover, completion, signatures.

Pure functions over an `Analysis` and absolute offsets in code points; none raises, whatever the text and wherever the
offset (`rename` refuses with a reason). The workbench and the language server use these and nothing else; each module
is loaded when one of its names is first used. No module has the name of a function: loading it would hide that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from halo_lang.lazy import lazy_names

if TYPE_CHECKING:
    from halo_lang.assist.completion import Completions as Completions
    from halo_lang.assist.completion import Item as Item
    from halo_lang.assist.completion import complete as complete
    from halo_lang.assist.hovers import Hover as Hover
    from halo_lang.assist.hovers import hover as hover
    from halo_lang.assist.navigation import definition as definition
    from halo_lang.assist.navigation import references as references
    from halo_lang.assist.outlines import Symbol as Symbol
    from halo_lang.assist.outlines import outline as outline
    from halo_lang.assist.positions import Encoding as Encoding
    from halo_lang.assist.positions import Place as Place
    from halo_lang.assist.renaming import RenameRefused as RenameRefused
    from halo_lang.assist.renaming import rename as rename
    from halo_lang.assist.renaming import rename_span as rename_span
    from halo_lang.assist.signatures import SignatureHelp as SignatureHelp
    from halo_lang.assist.signatures import signature_help as signature_help

_HOMES = {
    "Completions": "completion",
    "Encoding": "positions",
    "Hover": "hovers",
    "Item": "completion",
    "Place": "positions",
    "RenameRefused": "renaming",
    "SignatureHelp": "signatures",
    "Symbol": "outlines",
    "complete": "completion",
    "definition": "navigation",
    "hover": "hovers",
    "outline": "outlines",
    "references": "navigation",
    "rename": "renaming",
    "rename_span": "renaming",
    "signature_help": "signatures",
}

__all__ = [*_HOMES]  # pyright: ignore[reportUnsupportedDunderAll] - each is imported above
__getattr__ = lazy_names(__name__, _HOMES)
