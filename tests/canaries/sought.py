"""What counts as a secret while tests run, and looking for it."""

from __future__ import annotations

import re
from collections import deque
from typing import TYPE_CHECKING

from tests.canaries import PASSPHRASE, SEED, TEXT

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Sought"]

_SEED = re.compile(rb"(?<![A-Z2-7])S[A-Z2-7]{55}(?![A-Z2-7])")
_SHORTEST_PASSPHRASE = 12  # characters; what is shorter, such as "wrong", occurs by chance
_SHORTEST_TEXT = 24  # likewise
_LONGEST = 4096
_TEXTS_OF_A_TEST = 200
_CHUNK = 1 << 20


class Sought:
    """The planted canaries, and the secrets that the tests really use, noted as they are used.

    Passphrases and seeds of wallets are sought for good, texts of memories as long as the test runs that
    remembered them.
    """

    def __init__(self) -> None:
        self._lasting = {TEXT.split()[0].encode(): "text", PASSPHRASE.split(":")[0].encode(): "passphrase"}
        self._seeds = {SEED.encode()}
        self._texts: deque[bytes] = deque(maxlen=_TEXTS_OF_A_TEST)

    def note_passphrase(self, passphrase: object) -> None:
        """A wallet was made or opened with it."""
        if isinstance(passphrase, str) and len(passphrase) >= _SHORTEST_PASSPHRASE:
            self._lasting.setdefault(_bytes(passphrase), "passphrase")

    def note_seed(self, seed: str) -> None:
        """A wallet holds it."""
        self._seeds.add(seed.encode())

    def note_text(self, text: object) -> None:
        """Somebody remembers it."""
        if isinstance(text, str) and _SHORTEST_TEXT <= len(text) <= _LONGEST and text.strip():
            self._texts.append(_bytes(text))

    def forget_texts(self) -> None:
        """Another test begins."""
        self._texts.clear()

    def kinds(self, data: str | bytes) -> set[str]:
        """Which kinds of secrets are in there."""
        found = self._lasting_kinds(raw := data if isinstance(data, bytes) else _bytes(data))
        if any(text in raw for text in self._texts):
            found.add("text")
        return found

    def kinds_in_file(self, path: Path) -> set[str]:
        """The same for a file of any size, by what is sought for good."""
        found: set[str] = set()
        rest = b""
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                found |= self._lasting_kinds(rest + chunk)
                rest = chunk[-_LONGEST:]
        return found

    def _lasting_kinds(self, data: bytes) -> set[str]:
        found = {kind for needle, kind in self._lasting.items() if needle in data}
        if any(seed in self._seeds for seed in _SEED.findall(data)):
            found.add("seed")
        return found


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")
