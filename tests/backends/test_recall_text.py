"""Every script, every kind of text, with every piece of query syntax around it: found, and never syntax."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mycelium_sdk.backends.local import LocalVectorBackend, search
from mycelium_sdk.backends.text import query_terms, terms
from mycelium_sdk.testing.recall_conformance import TEXTS

OWNER = "GBRPYHIL2CI3FNQ4BXLFMNDLFJUNPU2HY3ZMFSHONUCEOASW7QC7OX2H"

SYNTAX = (
    '"', "'", '""', "*", "-", "+", ":", "^", "(", ")", "{", "}", "~1", "NEAR(", "NEAR/2", " AND ", " OR ",
    " NOT ", "AND", "terms:", "rowid:", ";--", "%", "_", "\\", "\0", "\n", "\u200b", "\u3000", "|", "&",
    "<->", ":*", "!",
)  # fmt: skip

_names = st.sampled_from(sorted(TEXTS))
_syntax = st.lists(st.sampled_from(SYNTAX), max_size=3).map("".join)


@settings(max_examples=150, deadline=None)
@given(
    names=st.lists(_names, min_size=1, max_size=6, unique=True),
    asked=st.integers(0, 5),
    before=_syntax,
    after=_syntax,
    glue=st.sampled_from([" ", "\n", " ", "\t", " — "]),
    tail=st.sampled_from([0, 10**6]),
)
def test_any_text_is_found_among_any_others_by_any_query(
    *, names: list[str], asked: int, before: str, after: str, glue: str, tail: int
) -> None:
    wanted, query = TEXTS[names[asked % len(names)]]
    with pytest.MonkeyPatch.context() as patch, LocalVectorBackend(OWNER, ":memory:") as store:
        patch.setattr(search, "TAIL", tail)
        store.remember_many(TEXTS[name][0] for name in names)
        together = f"{before} {glue.join(TEXTS[name][0] for name in names)} {after}"
        store.remember(together)
        question = f"{before} {query} {after}"
        hits = store.recall(question, k=100)
    found = [hit["content"] for hit in hits]
    assert all(0 < hit["score"] <= 1 for hit in hits)
    assert all(set(query_terms(question)) & set(terms(text)) for text in found)
    assert together in found
    # Words like "after" count only where there are no others, and some syntax is made of words.
    assert wanted in found or not set(query_terms(query)) <= set(query_terms(question))
    assert wanted in found or name_of(wanted) in {"NUL", "stop-words only", "punctuation only"}


def name_of(text: str) -> str:
    """The name of one of the texts."""
    return next(name for name, (other, _) in TEXTS.items() if other == text)


@settings(max_examples=100, deadline=None)
@given(query=st.text(max_size=30), text=st.text(min_size=1, max_size=30))
def test_any_query_at_all_finds_what_shares_a_term_and_nothing_else(query: str, text: str) -> None:
    with LocalVectorBackend(OWNER, ":memory:") as store:
        store.remember(text)
        found = bool(store.recall(query))
    assert found == (bool(query.strip()) and bool(set(query_terms(query)) & set(terms(text))))


@pytest.mark.parametrize("name", ["Chinese", "Thai", "Arabic", "emoji", "code", "NUL"])
def test_a_megabyte_of_any_script(name: str) -> None:
    text, query = TEXTS[name]
    filler = "ordinary words 字 слово كلمة " * 2
    many = filler * (500_000 // len(filler.encode()))
    long = f"{many}{text} {many}"
    with LocalVectorBackend(OWNER, ":memory:") as store:
        store.remember(long)
        store.remember_many(f"something else {number}" for number in range(200))
        assert [hit["content"] == long for hit in store.recall(query)] == [True]


@pytest.mark.parametrize(
    ("stored", "query"),
    [
        ("She went home", "where did she go"),
        ("we go there", "who went"),
        ("the children sang", "what does the child sing"),
        ("two mice", "mouse"),
        ("he has written it", "who wrote"),
        ("they are running", "runs"),
        ("Many thanks for May", "may"),
    ],
)
def test_english_words_are_found_in_all_their_forms(stored: str, query: str) -> None:
    assert set(query_terms(query)) & set(terms(stored))


def test_words_of_questions_alone_find_nothing_that_others_would_hide() -> None:
    assert query_terms("how many and how much of it may be") == ("may",)
