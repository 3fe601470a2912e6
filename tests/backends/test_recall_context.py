"""What was written just before and after a memory helps to find it, where the order of writing matters.

On the project's own conversation: questions that a turn answers whose words stand in the turns around it.
"""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

import pytest

from benchmarks.conversations import Conversation, Memory, Question, own_conversation
from benchmarks.recall_quality import (
    Answer,
    answers,
    contents,
    elsewhere,
    fts5,
    hashed,
    ours,
    plain,
    scores,
)
from mycelium_sdk.backends.local import LocalVectorBackend, search
from mycelium_sdk.backends.text import query_terms, terms

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from benchmarks.recall_quality import Recall

QUESTIONS = {
    "How much are the deposits at the two places?": "Two months' rent in both cases",
    "Which shoes was Mara running in at first?": "Old green trainers",
    "Who delivers the clay, and at what price?": "Kestrel Clay, the speckled stoneware",
    "When is the party of Otis?": "On the Saturday itself at three",
    "What is Otis into at the moment?": "Octopuses. He can tell you",
    "What sold best at the Spring Market?": "The little egg cups with feet",
    "What made the shelf tilt?": "A cracked prop",
    "What does the quote of 2,140 include?": "New board, kiln socket",
    "How many days a week can she run?": "Three. Wednesday before work",
    "How did the Saturday of the move go?": "Hefty Goose were there at seven",
    "What should be packed last?": "The glaze buckets, the scales",
    "Which breakfast has worked before long runs?": "Porridge with honey",
    "How do the wedding plates of the Avelins travel?": "Felix comes with a van",
    "When is the inspection of the dairy's power?": "Friday 12 June at ten",
    "Does her apprentice move with her?": "Teo? Of course",
    "What can she spend on the whole move?": "Nine thousand euros",
    "What did she tell the chef about the salamander grill?": "That stoneware hates sudden heat",
    "How was the long run on Saturday?": "13 kilometres in 1:21",
    "Is there a break clause in the lease?": "After 18 months",
    "Did Otis like the book?": "He did, but he announced",
    "When can Ilse start at the dairy?": "Not before 8 June",
    "How far had she raced before the half, and what is her target?": "Never further than a 10k",
    "How were the viewings?": "Cooper's Yard unit 7 has 88",
    "What about power in the dairy and the yard?": "The Old Dairy has three-phase already",
    "Was the broken wheel covered by the movers?": "They took it off the bill",
    "How will she get to the race at the fish hall?": "Petra drives down with Otis",
}


def _conversation() -> Conversation:
    own = own_conversation()
    questions = []
    for text, beginning in QUESTIONS.items():
        (answer,) = (m.content for m in own.memories if m.content.split(": ", 1)[1].startswith(beginning))
        questions.append(Question(text, "context", frozenset([answer])))
    return Conversation(own.name, own.memories, tuple(questions))


CONVERSATION = _conversation()


def _asked(
    recall: AbstractContextManager[Recall], conversation: Conversation = CONVERSATION
) -> Sequence[Answer]:
    with recall as found:
        return answers(found, conversation.questions)


@pytest.mark.parametrize("sessions", [False, True])
def test_answers_are_found_by_the_words_around_them(*, sessions: bool) -> None:
    found = scores(_asked(ours(CONVERSATION, sessions=sessions)))
    alone = scores(_asked(plain(CONVERSATION)))
    assert found.at_10 > 0.75
    assert found.at_5 > 0.6
    assert found.at_10 > alone.at_10 + 0.5
    for baseline in (fts5, hashed):
        assert found.at_10 > scores(_asked(baseline(CONVERSATION))).at_10 + 0.5


def test_the_same_memories_in_random_order_are_found_as_by_plain_bm25() -> None:
    lost = []
    for seed in range(5):
        shuffled = CONVERSATION.shuffled(seed)
        found = scores(_asked(ours(shuffled, sessions=False), shuffled))
        lost.append(scores(_asked(plain(shuffled), shuffled)).at_10 - found.at_10)
    assert statistics.fmean(lost) <= 0.01


def test_questions_that_share_words_with_their_answers_are_answered_as_well() -> None:
    own = own_conversation()
    found = scores(_asked(ours(own, sessions=True), own))
    assert found.at_5 == 1.0
    assert found.reciprocal_rank >= scores(_asked(plain(own), own)).reciprocal_rank
    assert found.at_10 > scores(_asked(hashed(own), own)).at_10 + 0.3


def test_indexed_or_not_makes_no_difference(owner: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = []
    for number, tail in enumerate((0, 100, 10**6)):
        monkeypatch.setattr(search, "TAIL", tail)
        with LocalVectorBackend(owner, path.with_name(f"{number}.db")) as store:
            for memory in CONVERSATION.memories:
                store.remember(memory.content, session=memory.session)
                if number == 1:
                    store.recall("deposit")
            given.append(
                [
                    [(hit["content"], hit["score"]) for hit in store.recall(question.text, k=50)]
                    for question in CONVERSATION.questions
                ]
            )
    assert given[0] == given[1] == given[2]


def test_sessions_written_at_the_same_time_are_not_context_of_each_other(owner: str) -> None:
    apart = [memory.content for memory in CONVERSATION.memories]
    other = [f"entry {number} of a log without any connection" for number in range(len(apart))]
    with LocalVectorBackend(owner, ":memory:") as store:
        for one, two in zip(CONVERSATION.memories, other, strict=True):
            store.remember(one.content, session=one.session)
            store.remember(two, session="log")
        found = scores(answers(contents(store.recall), CONVERSATION.questions))
    assert found.at_10 > 0.7


def test_a_long_pause_ends_a_run(owner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def found(pause: float) -> bool:
        clock = [1.8e9]
        monkeypatch.setattr("time.time", lambda: clock[0])
        with LocalVectorBackend(owner, ":memory:") as store:
            for number, memory in enumerate(CONVERSATION.memories):
                if number in {109, 110, 111}:
                    clock[0] += pause
                store.remember(memory.content)
            answer = next(m.content for m in CONVERSATION.memories if "A cracked prop" in m.content)
            return answer in contents(store.recall)("What made the shelf tilt?", 10)

    assert found(60.0)
    assert not found(2 * 3600.0)


def test_an_order_that_is_not_known_is_no_context(owner: str) -> None:
    with LocalVectorBackend(owner, ":memory:") as store:
        store.remember_many(memory.content for memory in CONVERSATION.memories)
        blob = store.export_blob()
        store.clear()
        store.import_blob(blob)
        for question in CONVERSATION.questions:
            wanted = set(query_terms(question.text))
            for hit in store.recall(question.text, k=100):
                assert wanted.intersection(terms(hit["content"]))


def test_context_does_not_pass_the_filters(owner: str) -> None:
    with LocalVectorBackend(owner, ":memory:") as store:
        for number, memory in enumerate(CONVERSATION.memories):
            store.remember(memory.content, [f"t{number % 2}"], session=memory.session)
        for question in CONVERSATION.questions:
            hits = store.recall(question.text, k=300, tags=["t1"], session="s06")
            assert all(hit["tags"] == ["t1"] and hit["session"] == "s06" for hit in hits)
        # The tag's memories are still found by the words of those around them that do not have it.
        place = next(n for n, m in enumerate(CONVERSATION.memories) if "A cracked prop" in m.content)
        hits = store.recall("What made the shelf tilt?", tags=[f"t{place % 2}"])
        assert CONVERSATION.memories[place].content in [hit["content"] for hit in hits]


def test_pages_fit_together_with_context(owner: str) -> None:
    with LocalVectorBackend(owner, ":memory:") as store:
        memories = list(CONVERSATION.memories) + [
            Memory(f"the deposit of page {number} {number * 7919 % 1009}", "other") for number in range(200)
        ]
        for memory in memories:
            store.remember(memory.content, session=memory.session)
        everything = store.recall("How much is the deposit of the move?", k=1000)
        pages = [
            hit
            for start in range(0, len(everything) + 7, 7)
            for hit in store.recall("How much is the deposit of the move?", k=7, offset=start)
        ]
        assert pages == everything
        assert len({hit["id"] for hit in everything}) == len(everything) > 200


def test_forgotten_neighbours_are_no_context_any_more(owner: str) -> None:
    with LocalVectorBackend(owner, ":memory:") as store:
        ids = [store.remember(memory.content) for memory in CONVERSATION.memories]
        place = next(n for n, m in enumerate(CONVERSATION.memories) if "A cracked prop" in m.content)
        question = "What made the shelf tilt?"
        assert ids[place] in [hit["id"] for hit in store.recall(question)]
        for number in (*range(place - 8, place), *range(place + 1, place + 8)):
            store.forget(ids[number])
        assert ids[place] not in [hit["id"] for hit in store.recall(question)]


@pytest.mark.parametrize("sessions", [False, True])
def test_another_machine_recalls_in_the_same_order(*, sessions: bool) -> None:
    """After anchoring and loading there, with what the context file tells."""
    questions = [question.text for question in (*CONVERSATION.questions, *own_conversation().questions)]
    with ours(CONVERSATION, sessions=sessions) as here, elsewhere(CONVERSATION, sessions=sessions) as there:
        for question in questions:
            assert there(question, 30) == here(question, 30)


def test_without_the_context_file_the_words_around_are_no_help() -> None:
    """So that the test above shows what it says."""
    found = scores(_asked(elsewhere(CONVERSATION, sessions=True, with_context=False)))
    assert found.at_10 < scores(_asked(ours(CONVERSATION, sessions=True))).at_10 - 0.5
