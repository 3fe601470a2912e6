"""The analyzer: texts and queries give terms that find each other."""

from __future__ import annotations

import subprocess
import sys
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mycelium_sdk.backends.text import MAX_QUERY_TERMS, MAX_TERM_CHARACTERS, query_terms, terms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Cats are running", ["cat", "are", "run"]),
        ("happily, happiness; HAPPY", ["happili", "happi", "happi"]),
        ("snake_case and camelCase", ["snake", "case", "and", "camelcas"]),
        ("it's the users' wish", ["it", "s", "the", "user", "wish"]),
        ("v2.10 of x86_64", ["v2", "10", "of", "x86", "64"]),
        ("Straße", ["strass"]),
        ("ＡＢＣ ①", ["abc", "1"]),
        ("l'été à Zürich", ["l", "ete", "a", "zurich"]),
        ("東京", ["東", "京", "東京"]),
        ("iPhone東京タワー15", ["iphon", *"東京タワー", "東京", "京タ", "タワ", "ワー", "15"]),
        ("ｶﾞｷﾞ", ["ガ", "ギ", "ガギ"]),
        ("한국어", ["한", "국", "어", "한국", "국어"]),
        ("🍕🍕", ["🍕", "🍕"]),
        ("👩‍💻", ["👩", "💻"]),
        ("👍🏽!", ["👍"]),
        ("❤️", ["❤"]),
        ("🇩🇪", ["🇩", "🇪", "🇩🇪"]),
        ("10€ + 5", ["10", "€", "+", "5"]),
        ("well :-) …", ["well", ":-)", "..."]),
        ("مُحَمَّد", ["محمد"]),
        ("שָׁלוֹם", ["שלום"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("ёлка Йод", ["елка", "иод"]),
        ("İstanbul", ["istanbul"]),
        ("\0", ["\0"]),
        ("a\u200bb \u200e", ["ab", "\u200e"]),
        ("", []),
        (" \n\u3000", []),
    ],
)
def test_terms(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What does the cat like?", ("cat", "like")),
        ("What is it?", ("what", "is", "it")),
        ("to be or not to be", ("to", "be", "or", "not")),
        ("is it :-) ?", ("is", "it")),
        (":-) ?", (":-)", "?")),
        ("— … 。", ("—", "...", "。")),
        ("cat CATS cat", ("cat",)),
        ("猫", ("猫",)),
        ("東京都", ("東京", "京都")),
        ("the 猫 is", ("猫",)),
        ("\u200b", ("\u200b",)),
    ],
)
def test_query_terms(text: str, expected: tuple[str, ...]) -> None:
    assert query_terms(text) == expected


def test_stop_words_are_whole_words_before_stemming() -> None:
    assert query_terms("doing dot things") == ("dot", "thing")
    assert query_terms("don't") == ("don", "t")


@given(st.text(max_size=40))
@example("ΐ")
@example("ﷺ")
@example("㍿℡")
@example("\u0345\u0301")
@example("x" * 100)
@example("_" * 100)
@example("漢" * 100)
def test_a_text_finds_itself(text: str) -> None:
    stored = terms(text)
    wanted = query_terms(text)
    assert set(wanted) <= set(stored)
    assert bool(wanted) == bool(stored)
    for term in stored:
        assert term
        assert not any(character.isspace() for character in term)
        assert len(term) <= MAX_TERM_CHARACTERS
        assert not any("A" <= character <= "Z" for character in term)


@given(st.text(alphabet=st.characters(categories=["L", "N", "So"]), min_size=1, max_size=20))
def test_letters_digits_and_symbols_always_give_terms(text: str) -> None:
    # Some letters are marks that readers leave out, once taken apart.
    if unicodedata.normalize("NFKD", text).strip("\u0640").strip():
        assert terms(text)


@given(st.text(max_size=30))
def test_normal_forms_and_case_make_no_difference(text: str) -> None:
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        assert terms(unicodedata.normalize(form, text)) == terms(text)
    if text.isascii():
        assert terms(text.upper()) == terms(text)


def test_a_very_long_query_is_cut() -> None:
    assert len(query_terms(" ".join(f"word{number}" for number in range(10_000)))) == MAX_QUERY_TERMS
    assert len(query_terms("".join(chr(0x4E00 + number) for number in range(10_000)))) == MAX_QUERY_TERMS


def test_stemming_is_imported_with_the_first_word_only() -> None:
    code = (
        "import sys; from mycelium_sdk.backends.text import terms;"
        " assert 'snowballstemmer' not in sys.modules;"
        " terms('words'); assert 'snowballstemmer' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
