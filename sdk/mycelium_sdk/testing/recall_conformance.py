"""What recall must do in every backend: the part of the suite about finding, and its fixtures."""

# ruff: noqa: S101 - a test suite

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from mycelium_sdk.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mycelium_sdk.backends.base import BaseBackend

TEXTS = {
    "Chinese": ("我昨天在北京吃了烤鸭", "北京"),
    "one Chinese character": ("猫坐在垫子上", "猫"),
    "Japanese": ("東京は日本の首都です", "首都"),
    "Korean": ("한국어를 공부하고 있습니다", "한국어"),
    "Thai": ("ฉันชอบกินข้าวผัด", "ข้าว"),
    "Arabic": ("القطة تجلس على السجادة", "القطة"),
    "Hebrew": ("החתול יושב על השטיח", "החתול"),
    "Hindi": ("बिल्ली चटाई पर बैठी है", "बिल्ली"),
    "Russian": ("Кошка сидит на ковре", "кошка"),
    "German": ("Die Straße nach Köln ist gesperrt", "STRASSE"),
    "German compound": ("Der Donaudampfschifffahrtskapitän grüßt", "donaudampfschifffahrtskapitän"),
    "two Japanese characters": ("明日は京都へ行きます", "京都"),
    "Korean with a particle": ("서울에서 친구를 만났다", "서울"),
    "Arabic with vowel signs": ("ذَهَبَ الوَلَدُ إِلَى المَدرَسَةِ", "المدرسة"),
    "Hebrew with points": ("שָׁלוֹם עֲלֵיכֶם", "שלום"),
    "accents": ("Un café crème, s'il vous plaît", "cafe creme"),
    "decomposed": ("un cafe\u0301 noir", "café noir"),
    "emoji": ("we had 🍕 for lunch", "🍕"),
    "joined emoji": ("she is a 👩‍💻 now", "💻"),
    "flag": ("moved to 🇩🇪 last year", "🇩🇪"),
    "digits": ("the door code is 4711", "4711"),
    "one letter": ("vitamin C helps", "c"),
    "code": ("call parse_blob(data) first", "parse_blob"),
    "code with symbols": ("if (a[i] != b->next) return x<<2;", "b->next"),
    "address": ("see https://example.org/a/b?q=1", "example.org"),
    "a whole address": ("at https://a.example.com/y.html#part-2", "https://a.example.com/y.html#part-2"),
    "mail address": ("write to ana.perez+news@example.net", "ana.perez+news@example.net"),
    "path": (r"it is in C:\Users\Ana and /usr/share", "/usr/share"),
    "NUL": ("before\0after", "after"),
    "stop-words only": ("to be or not to be", "to be or not to be"),
    "punctuation only": ("well :-)", ":-)"),
    "apostrophe": ("it is the user's wish", "users' wish"),
}


def _conversation() -> tuple[list[str], list[tuple[int, str, set[str]]]]:
    """Texts whose neighbours share words; and of some, which answer a question with none of its words:
    their place, the question, its words."""
    texts, answers = [], []
    for topic in range(40):
        about = [f"topic{topic}word{word}" for word in range(6)]
        texts += [
            f"{about[0]} {about[1]} begin",
            f"{about[1]} {about[2]} {about[3]} go on",
            f"shall we {about[2]} {about[4]} then",
            f"yes certainly number{topic}",
            f"{about[3]} {about[4]} {about[5]} more",
            f"{about[5]} {about[0]} end",
        ]
        answers.append((6 * topic + 3, f"{about[2]} {about[4]}", {about[2], about[4]}))
    return texts, answers


_CONVERSATION, _ANSWERS = _conversation()


class RecallConformance:
    """Finding, in every backend. Subclasses give the fixture `open_backend`."""

    persistent: ClassVar[bool] = True
    rounds: ClassVar[int] = 300
    """How many single writes a test makes that needs many; fewer for a store that takes its time."""
    finds_by_context: ClassVar[bool] = True
    """Whether a memory is found by the words of those written just before and after it."""

    @pytest.fixture
    def open_backend(self) -> Callable[[str], BaseBackend]:
        """How a store is opened by name."""
        raise NotImplementedError("a subclass of BackendConformance gives the fixture open_backend")

    @pytest.fixture
    def opened(self, open_backend: Callable[[str], BaseBackend]) -> Iterator[Callable[[str], BaseBackend]]:
        """The same, closing all at the end."""
        stores: list[BaseBackend] = []

        def opener(name: str) -> BaseBackend:
            stores.append(open_backend(name))
            return stores[-1]

        yield opener
        for store in stores:
            store.close()

    @pytest.fixture
    def backend(self, opened: Callable[[str], BaseBackend]) -> BaseBackend:
        """An empty store."""
        return opened("one")

    def test_recall_gives_the_best_first_with_all_there_is_to_know(self, backend: BaseBackend) -> None:
        backend.remember_many(["apples are red", "the sky is blue", "bananas are yellow"])
        best = backend.remember("green apples, sour apples", ["fruit", "food"], session="market")
        backend.remember("ein Apfel")
        hits = backend.recall("Which APPLE do I like?")
        assert [hit["content"] for hit in hits] == ["green apples, sour apples", "apples are red"]
        assert hits[0] | {"score": 0, "time": 0, "sequence": 0} == {
            "id": best, "content": "green apples, sour apples", "tags": ["food", "fruit"], "score": 0,
            "session": "market", "time": 0, "sequence": 0,
        }  # fmt: skip
        assert 0 < hits[1]["score"] < hits[0]["score"] <= 1

    @pytest.mark.parametrize("name", TEXTS)
    def test_text_of_every_script_is_found(self, backend: BaseBackend, name: str) -> None:
        backend.remember_many(text for text, _ in TEXTS.values())
        text, query = TEXTS[name]
        hits = backend.recall(query)
        assert hits[0]["content"] == text
        assert all(0 < hit["score"] <= 1 for hit in hits)

    def test_a_megabyte_is_a_query_as_well(self, backend: BaseBackend) -> None:
        backend.remember_many(["plum", "pear"])
        assert [hit["content"] for hit in backend.recall("plum " + "filler " * 150_000, k=1)] == ["plum"]

    def test_what_was_written_just_before_and_after_helps_to_find_a_memory(
        self, backend: BaseBackend
    ) -> None:
        if not self.finds_by_context:
            pytest.skip("such a store leaves finding to somebody else")
        for number, text in enumerate(_CONVERSATION):
            backend.remember(text, session=f"s{number // 40}")
        for place, question, _ in _ANSWERS:
            answer = _CONVERSATION[place]
            hits = backend.recall(question, k=5)
            assert answer in [hit["content"] for hit in hits]
            assert all(0 < hit["score"] <= 1 for hit in hits)
            assert hits[0]["content"] != answer  # what says it itself comes first

    def test_in_random_order_memories_are_no_context_of_each_other(self, backend: BaseBackend) -> None:
        texts = list(_CONVERSATION)
        random.Random(1).shuffle(texts)  # noqa: S311 - no secret
        backend.remember_many(texts)
        for _, question, words in _ANSWERS:
            for hit in backend.recall(question, k=100):
                assert words & set(hit["content"].split())

    def test_other_sessions_are_no_context(self, backend: BaseBackend) -> None:
        for number, text in enumerate(_CONVERSATION):
            backend.remember(text, session=f"s{number // 40}")
            backend.remember(f"elsewhere {number}", session="elsewhere")
        for _, question, _ in _ANSWERS:
            assert all(hit["session"] != "elsewhere" for hit in backend.recall(question, k=100))

    @pytest.mark.parametrize(
        "query",
        ['"', '"plum', "plum AND", "NOT plum", "plum*", "-plum", "terms:plum", "(plum", "plum OR", "^plum",
         "{plum}", "NEAR(plum, 2)", "plum;--", "plum'", "plum\0", "%plum_", "plum\\", "+plum~1"],
    )  # fmt: skip
    def test_a_query_is_text_never_syntax(self, backend: BaseBackend, query: str) -> None:
        backend.remember("plum")
        backend.remember("pear")
        found = [hit["content"] for hit in backend.recall(query)]
        assert found == (["plum"] if "plum" in query else [])

    @pytest.mark.parametrize("query", ["", " ", "\n\t\u3000", "\0", "\u200b"])
    def test_a_blank_query_finds_nothing(self, backend: BaseBackend, query: str) -> None:
        backend.remember("a b c")
        assert backend.recall(query, k=10**9) == []

    @pytest.mark.parametrize(
        "arguments",
        [{"k": -1}, {"k": True}, {"k": 1.0}, {"k": "1"}, {"k": None}, {"offset": -1}, {"offset": False},
         {"offset": 0.5}, {"tags": "tag"}, {"tags": [1]}, {"tags": 3}, {"session": ""}, {"session": 1},
         {"query": None}, {"query": b"a"}, {"query": "\ud800"}],
    )  # fmt: skip
    def test_bad_arguments_are_refused(self, backend: BaseBackend, arguments: dict[str, Any]) -> None:
        with pytest.raises(InputError):
            backend.recall(**({"query": "a"} | arguments))

    def test_k_and_offset(self, backend: BaseBackend) -> None:
        backend.remember_many([f"note {'again ' * (number % 7)}{number}" for number in range(700)])
        everything = backend.recall("note again", k=10**30)
        assert len(everything) == len({hit["id"] for hit in everything}) == 700
        assert [hit["score"] for hit in everything] == sorted((h["score"] for h in everything), reverse=True)
        pages = [backend.recall("note again", k=90, offset=start) for start in range(0, 720, 90)]
        assert list(itertools.chain(*pages)) == everything
        assert backend.recall("note again", k=0) == backend.recall("note again", offset=700) == []
        assert len(backend.recall("note again")) == 5

    def test_filters(self, backend: BaseBackend) -> None:
        for number in range(300):
            tags = [f"t{number % 2}", f"m{number % 3}", "odd, tag"]
            backend.remember(f"thing {number}", tags, session=f"s{number % 5}" if number % 4 else None)
        hits = backend.recall("thing", k=1000, tags=["m0", "t1"])
        assert {hit["content"] for hit in hits} == {
            f"thing {number}" for number in range(300) if number % 6 == 3
        }
        hits = backend.recall("thing", k=1000, tags=iter(["odd, tag"]), session="s2")
        assert {hit["content"] for hit in hits} == {
            f"thing {number}" for number in range(300) if number % 5 == 2 and number % 4
        }
        assert backend.recall("thing", tags=["odd"]) == backend.recall("thing", session="S2") == []
        assert len(backend.recall("thing", k=1000, tags=[])) == 300

    def test_tags_are_found_like_text(self, backend: BaseBackend) -> None:
        wanted = backend.remember("no sugar", ["tea"])
        assert [hit["id"] for hit in backend.recall("tea")] == [wanted]

    def test_recall_shows_every_write_at_once(self, backend: BaseBackend) -> None:
        for number in range(self.rounds):
            wanted = backend.remember(f"fresh n{number}")
            assert [hit["id"] for hit in backend.recall(f"n{number}")] == [wanted]
            if number % 3:
                backend.forget(wanted)
                assert backend.recall(f"n{number}") == []
