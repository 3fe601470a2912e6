"""A page taken apart: elements with their attributes, and the text that a person sees."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

__all__ = ["Document", "Element"]

_SPACE = re.compile(r"[ \t\r\n]+")
_EMPTY = frozenset({"meta", "link", "input", "br", "img"})


@dataclass
class Element:
    """An element; `text` is all that is written inside it, with white space made one space."""

    tag: str
    attributes: dict[str, str | None]
    pieces: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return _SPACE.sub(" ", "".join(self.pieces)).strip(" ")


class Document(HTMLParser):
    """The elements of a page in their order. Checks that all are closed, in the right order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[Element] = []
        self._open: list[Element] = []
        self.feed(text)
        self.close()
        assert not self._open

    def all(self, tag: str, **attributes: str) -> list[Element]:
        """Those of a tag with these attributes; `_` at the end of a name is left out."""
        wanted = {name.rstrip("_"): value for name, value in attributes.items()}
        return [
            element
            for element in self.elements
            if element.tag == tag
            and all(element.attributes.get(name) == value for name, value in wanted.items())
        ]

    def one(self, tag: str, **attributes: str) -> Element:
        """The only one."""
        (found,) = self.all(tag, **attributes)
        return found

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """See `HTMLParser`."""
        element = Element(tag, dict(attrs))
        assert len(element.attributes) == len(attrs), "an attribute is there twice"
        self.elements.append(element)
        if tag not in _EMPTY:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """See `HTMLParser`."""
        self.elements.append(Element(tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        """See `HTMLParser`."""
        assert self._open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        """See `HTMLParser`."""
        for element in self._open:
            element.pieces.append(data)
