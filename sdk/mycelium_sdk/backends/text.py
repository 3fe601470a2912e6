"""One analyzer for stored text and for queries: what turns both into the terms that find each other.

Every text of every script gives terms, and a query is text like any other, never syntax. Compatibility forms,
case and the marks that readers leave out (accents, Hebrew points, Arabic vowel signs) make no difference.
Scripts written without spaces, and Hangul, give single characters and pairs of neighbours; emoji and other
symbols stand alone; ASCII words are taken as English: irregular forms as their base forms (`irregular`), then
stemmed (Snowball).
"""

from __future__ import annotations

import functools
import re
import unicodedata
from typing import TYPE_CHECKING

from mycelium_sdk.backends.irregular import BASE_FORMS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ANALYZER = "2"
"""Identity of the terms below: another one whenever a text gives other terms; indexes are made anew then."""

MAX_TERM_CHARACTERS = 64
MAX_QUERY_TERMS = 128
_MOST_REMEMBERED = 1 << 17

_ascii_words = re.compile(r"[a-z0-9]+|(?<!\S)[^\sa-z0-9]+(?!\S)")

# Marks that a reader leaves out: Latin, Greek and Cyrillic accents, Hebrew points, Arabic vowel signs.
_optional_marks = re.compile(
    "[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0640\u064b-\u065f\u0670\u06d6-\u06dc"
    "\u06df-\u06e8\u06ea-\u06ed]+"
)

# Thai, Lao, Tibetan, Myanmar, Khmer; Han, kana, bopomofo, Hangul; regional indicators: two make a flag.
_unspaced = re.compile(
    "([\u0e00-\u0fff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3040-\u312f"
    "\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff"
    "\U0001b000-\U0001b16f\U0001f1e6-\U0001f1ff\U00020000-\U0003ffff]+)"
)

# The Snowball project's English list with the pieces that apostrophes leave behind, with "many" and "much" of
# questions, and without "may", which is a month.
_STOP_WORDS = frozenset(
    (  # noqa: SIM905 - a list of 160 strings would hide the words
        "i me my myself we us our ours ourselves you your yours yourself yourselves he him his himself "
        "she her hers herself it its itself they them their theirs themselves what which who whom whose "
        "this that these those am is are was were be been being have has had having do does did doing "
        "will would shall should can could might must ought a an the and but if or because as until "
        "while of at by for with about against between into through during before after above below to "
        "from up down in out on off over under again further then once here there when where why how all "
        "any both each few many much more most other some such no nor not only own same so than too very s t "
        "d m ll re ve don doesn didn isn aren wasn weren hasn haven hadn won wouldn shouldn couldn mustn"
    ).split()
)


def terms(text: str) -> list[str]:
    """The terms of a stored text, in order and with repeats; no white space, no upper case."""
    if text.isascii():
        return [_english[word] for word in _ascii_words.findall(text.lower())]
    found: list[str] = []
    for token in _tokens(text):
        if token.isascii():
            found.append(_english[token])
        elif _unspaced.match(token):
            found.extend(token)
            found.extend(map(str.__add__, token, token[1:]))
        else:
            found.append(token)
    return found


def query_terms(text: str) -> tuple[str, ...]:
    """The distinct terms to look for, in the query's order, at most `MAX_QUERY_TERMS`.

    English stop-words, and punctuation standing alone, count only where the query holds nothing else.
    """
    telling: dict[str, None] = {}
    stop_words: dict[str, None] = {}
    punctuation: dict[str, None] = {}
    for token in _tokens(text):
        if token.isascii():
            if not token.isalnum():
                punctuation[token] = None
            elif token in _STOP_WORDS:
                stop_words[_english[token]] = None
            else:
                telling[_english[token]] = None
        elif len(token) > 1 and _unspaced.match(token):
            telling.update(dict.fromkeys(map(str.__add__, token, token[1:])))
        elif not token.translate(_classes).strip():
            punctuation[token] = None
        else:
            telling[token] = None
        if len(telling) >= MAX_QUERY_TERMS:
            break
    return tuple(telling or stop_words or punctuation)[:MAX_QUERY_TERMS]


def _tokens(text: str) -> Iterator[str]:
    """Words, runs of an unspaced script, single symbols, and punctuation that white space sets apart."""
    folded = _fold(text)
    if folded.isascii():
        yield from (word[:MAX_TERM_CHARACTERS] for word in _ascii_words.findall(folded))
        return
    for chunk in folded.split():
        if chunk.isascii():
            yield from (word[:MAX_TERM_CHARACTERS] for word in _ascii_words.findall(chunk))
            continue
        words = chunk.translate(_classes).split()
        if not words:
            yield chunk[:MAX_TERM_CHARACTERS]
        for word in words:
            for number, part in enumerate(_unspaced.split(word)):
                if part:
                    yield part if number % 2 else part[:MAX_TERM_CHARACTERS]


def _fold(text: str) -> str:
    """Compatibility forms, case and optional marks made equal (close to Unicode's NFKC_Casefold)."""
    if text.isascii():
        return text.lower()
    bare = _optional_marks.sub("", unicodedata.normalize("NFKD", text))
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", bare).casefold())


class _Classes(dict[int, str]):
    """What each character becomes before words are split at spaces; filled as characters are met."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        kind = unicodedata.category(character)
        if kind == "Cf" or 0xFE00 <= code <= 0xFE0F:
            image = ""  # joiners, direction marks and variation selectors only choose a glyph
        elif kind[0] in "LNM" or 0x1F1E6 <= code <= 0x1F1FF:
            image = character
        elif kind in {"So", "Sc", "Sm"} and code > 0x7F:
            image = f" {character} "
        else:
            image = " "
        self[code] = image
        return image


_classes = _Classes()


class _English(dict[str, str]):
    """The term of each ASCII token; filled as tokens are met, and emptied when it has grown large."""

    def __missing__(self, token: str) -> str:
        word = token[:MAX_TERM_CHARACTERS]
        term = _stem(BASE_FORMS.get(word, word)) if word.isalpha() else word
        if len(self) >= _MOST_REMEMBERED:
            self.clear()
        self[word] = term
        return term


_english = _English()


def _stem(word: str) -> str:
    # Imported here, since remembering needs no stemmer. A stemmer keeps state between calls, so each call has
    # its own: many threads analyse at once.
    from snowballstemmer.english_stemmer import EnglishStemmer  # type: ignore[import-untyped]

    return str(EnglishStemmer().stemWord(word))


def telling(found: Iterable[str]) -> set[str]:
    """The distinct terms of a text without those of stop-words: what it is about."""
    stop_terms = _stop_terms()
    return {term for term in found if term not in stop_terms}


@functools.cache
def _stop_terms() -> frozenset[str]:
    return frozenset(_english[word] for word in _STOP_WORDS)
