"""What a feature is given: a document as it was when the request came, and what the client understands."""

from __future__ import annotations

from dataclasses import dataclass

from lsprotocol import types

from halo_lang.server.colours import Colours
from halo_lang.server.knowledge import Knowledge
from halo_lang.server.places import Places
from halo_lang.source import Span


@dataclass(frozen=True, slots=True)
class Client:
    """The abilities of the client that answers depend on."""

    markdown: bool = False
    """Whether hovers and documentation may be Markdown; else they are shown as they are written."""
    related: bool = False
    """Whether a diagnostic may name other places."""

    label_offsets: bool = False
    """Whether a parameter may be told by where it stands in its signature; else it is told by its text."""

    @classmethod
    def of(cls, told: types.ClientCapabilities) -> Client:
        """As the client tells at the start."""
        document = told.text_document
        hover = document.hover if document else None
        published = document.publish_diagnostics if document else None
        signature = document.signature_help.signature_information if document and document.signature_help else None
        parameter = signature.parameter_information if signature else None
        return cls(
            markdown=bool(hover and types.MarkupKind.Markdown in (hover.content_format or ())),
            related=bool(published and published.related_information),
            label_offsets=bool(parameter and parameter.label_offset_support),
        )


@dataclass(frozen=True, slots=True)
class View:
    """One version of a document."""

    uri: str
    version: int
    places: Places
    client: Client
    knowledge: Knowledge
    colours: Colours

    def range(self, span: Span) -> types.Range:
        """Offsets as the client counts."""
        return self.places.range(span)

    def location(self, span: Span) -> types.Location:
        """A place in the document."""
        return types.Location(self.uri, self.places.range(span))

    def edit(self, span: Span, text: str) -> types.TextEdit:
        """Replace what stands at `span`."""
        return types.TextEdit(self.places.range(span), text)

    def prose(self, markdown: str) -> types.MarkupContent:
        """A text for people."""
        kind = types.MarkupKind.Markdown if self.client.markdown else types.MarkupKind.PlainText
        return types.MarkupContent(kind, markdown)
