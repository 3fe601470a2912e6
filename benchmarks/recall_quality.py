"""How much of what answers a question is recalled for it, beside what a user would pick instead.

    python -m benchmarks.recall_quality [LOCOMO_FILE] [--model] [--model-folder FOLDER]

Evidence recall among the first five and ten (R@5, R@10) and the mean reciprocal rank of the first evidence
(MRR), one `remember` a turn through the public API, each conversation a store of its own. "Elsewhere" is the
memory after it was anchored on one machine and loaded on another: two homes and one embedded chain. Without a
file, on the project's own conversation. With the LoCoMo file everything was chosen on the first five
conversations; what counts are the others.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import re
import sqlite3
import statistics
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.baseline import OWNER, FullScan
from benchmarks.conversations import locomo, own_conversation
from benchmarks.table import print_table
from mycelium_sdk.backends.local import LocalVectorBackend
from mycelium_sdk.backends.scoring import Lexical, Words
from mycelium_sdk.backends.text import query_terms, terms
from mycelium_sdk.config import load_configuration
from mycelium_sdk.context import AgentContext
from mycelium_sdk.memory import AgentMemory
from mycelium_sdk.wallet import Wallet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.conversations import Conversation, Question

K = 10

_WALLET_WORDS = "of a wallet that lasts as long as a measurement"

SKIPPED = """\
LoCoMo is skipped: its file (CC BY-NC 4.0) is not part of the project. To measure on it, give its path:
`make bench LOCOMO=locomo10.json`, or `python -m benchmarks.recall_quality locomo10.json`.
"""

Recall = Callable[[str, int], Sequence[str]]
"""A question and a number to the contents of so many memories, best first."""


@dataclass(frozen=True)
class Scores:
    """The mean over questions."""

    questions: int
    at_5: float
    at_10: float
    reciprocal_rank: float


@dataclass(frozen=True)
class Answer:
    """How one question fared."""

    category: str
    at_5: float
    at_10: float
    reciprocal_rank: float


def answers(recall: Recall, questions: Sequence[Question]) -> list[Answer]:
    """Ask all questions of any store: the one function that measures."""
    return [_answer(question, recall(question.text, K)) for question in questions]


def _answer(question: Question, found: Sequence[str]) -> Answer:
    wanted = question.evidence
    first = next((place for place, content in enumerate(found, 1) if content in wanted), None)
    return Answer(
        question.category,
        len(wanted.intersection(found[:5])) / len(wanted),
        len(wanted.intersection(found)) / len(wanted),
        1.0 / first if first else 0.0,
    )


def scores(given: Sequence[Answer]) -> Scores:
    """The means."""
    return Scores(
        len(given),
        statistics.fmean(answer.at_5 for answer in given),
        statistics.fmean(answer.at_10 for answer in given),
        statistics.fmean(answer.reciprocal_rank for answer in given),
    )


def contents(recall: Callable[..., Sequence[Any]]) -> Recall:
    """The `recall` of a backend or of an `AgentMemory` as what `answers` takes."""
    return lambda question, k: [hit["content"] for hit in recall(question, k=k)]


@contextlib.contextmanager
def ours(conversation: Conversation, *, sessions: bool, embed: Any = None) -> Iterator[Recall]:
    """Our store, one `remember` a turn."""
    with LocalVectorBackend(OWNER, ":memory:", embed) as store:
        for memory in conversation.memories:
            store.remember(memory.content, session=memory.session if sessions else None)
        yield contents(store.recall)


@contextlib.contextmanager
def elsewhere(conversation: Conversation, *, sessions: bool, with_context: bool = True) -> Iterator[Recall]:
    """The same memory, anchored and loaded on a second machine. `with_context`: whether the context file
    comes with the blob."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        Wallet.create(folder / "wallet" / "wallet.json", _WALLET_WORDS)
        with _machine(folder, "first") as first:
            for memory in conversation.memories:
                first.remember(memory.content, session=memory.session if sessions else None)
            first.anchor()
        if not with_context:
            for file in folder.glob("first/blobs/*.context.json"):
                file.unlink()
        with _machine(folder, "second") as second:
            second.rehydrate()
            yield contents(second.recall)


def _machine(folder: Path, name: str) -> AgentMemory:
    configuration = load_configuration(
        start=folder,
        env={"MYCELIUM_HOME": str(folder / name)},
        overrides={
            "onchain.chain_file": str(folder / "chain.db"),
            "wallet.path": str(folder / "wallet" / "wallet.json"),
        },
    )
    context = AgentContext(configuration=configuration, passphrase=_WALLET_WORDS)
    return AgentMemory(context, backend_kwargs={"durability": "process"})


@contextlib.contextmanager
def plain(conversation: Conversation) -> Iterator[Recall]:
    """The same terms and weights, each memory by itself: BM25 and nothing else."""
    texts = list(dict.fromkeys(memory.content for memory in conversation.memories))
    found = [terms(text) for text in texts]
    words = [Words({term: text.count(term) for term in set(text)}, len(text)) for text in found]
    average = statistics.fmean(len(text) for text in found)
    frequencies = {
        term: sum(term in text.frequencies for text in words) for text in found for term in set(text)
    }

    def recall(question: str, k: int) -> Sequence[str]:
        lexical = Lexical(query_terms(question), len(texts), average, frequencies)
        weights = [lexical.weight(text) for text in words]
        order = sorted(range(len(texts)), key=lambda place: (-weights[place], -place))
        return [texts[place] for place in order[:k] if weights[place] > 0]

    yield recall


@contextlib.contextmanager
def fts5(conversation: Conversation) -> Iterator[Recall]:
    """SQLite's full-text index as it comes: its own tokenizer and ranking, any of the question's words."""
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE VIRTUAL TABLE memories USING fts5(content)")
        connection.executemany(
            "INSERT INTO memories VALUES (?)", [(memory.content,) for memory in conversation.memories]
        )

        def recall(question: str, k: int) -> Sequence[str]:
            query = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", question))
            rows = connection.execute(
                "SELECT content FROM memories WHERE memories MATCH ? ORDER BY rank LIMIT ?", (query, k)
            )
            return [content for (content,) in rows]

        yield recall


@contextlib.contextmanager
def hashed(conversation: Conversation) -> Iterator[Recall]:
    """Words hashed into 256 dimensions."""
    with contextlib.closing(FullScan(":memory:")) as scan:
        scan.remember_many(memory.content for memory in conversation.memories)
        yield scan.recall


def compare(conversations: Sequence[Conversation], embed: Any = None) -> dict[str, list[list[Answer]]]:
    """Every method's answers, by conversation."""
    shuffled = [conversation.shuffled(seed) for seed, conversation in enumerate(conversations)]
    methods: list[tuple[str, Sequence[Conversation], Callable[..., Any]]] = [
        ("hashed bag of words", conversations, hashed),
        ("FTS5 as it comes", conversations, fts5),
        ("plain BM25 with our terms", conversations, plain),
        ("ours, no session given", conversations, functools.partial(ours, sessions=False)),
        ("ours, sessions given", conversations, functools.partial(ours, sessions=True)),
        ("elsewhere, no session given", conversations, functools.partial(elsewhere, sessions=False)),
        ("elsewhere, sessions given", conversations, functools.partial(elsewhere, sessions=True)),
        ("plain BM25, random order", shuffled, plain),
        ("ours, random order", shuffled, functools.partial(ours, sessions=False)),
    ]
    if embed is not None:
        model = functools.partial(ours, embed=_Remembering(embed))
        methods += [
            ("with the model, no session given", conversations, functools.partial(model, sessions=False)),
            ("with the model, sessions given", conversations, functools.partial(model, sessions=True)),
        ]
    found: dict[str, list[list[Answer]]] = {}
    for name, asked, method in methods:
        found[name] = []
        for conversation in asked:
            with method(conversation) as recall:
                found[name].append(answers(recall, conversation.questions))
    return found


class _Remembering:
    """An embedder that computes each vector once, since every method has the same texts."""

    def __init__(self, embedder: Any) -> None:
        self._embedder = embedder
        self._vectors: dict[str, Sequence[float]] = {}
        self.identity = embedder.identity

    def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        new = [text for text in texts if text not in self._vectors]
        if new:
            self._vectors.update(zip(new, self._embedder.embed(new), strict=True))
        return [self._vectors[text] for text in texts]


def report(title: str, found: dict[str, list[list[Answer]]]) -> None:
    """Print the tables of some conversations."""
    categories = sorted({answer.category for part in found.values() for given in part for answer in given})
    rows, by_category = [], []
    for name, part in found.items():
        given = [answer for answers_ in part for answer in answers_]
        mean = scores(given)
        rows.append((name, f"{mean.at_5:.3f}", f"{mean.at_10:.3f}", f"{mean.reciprocal_rank:.3f}"))
        for category in categories:
            of = scores([answer for answer in given if answer.category == category])
            by_category.append(
                (
                    name,
                    category,
                    str(of.questions),
                    f"{of.at_5:.3f}",
                    f"{of.at_10:.3f}",
                    f"{of.reciprocal_rank:.3f}",
                )
            )
    print_table((title, "R@5", "R@10", "MRR"), rows)
    print()
    if len(categories) > 1:
        print_table(("by category", "", "questions", "R@5", "R@10", "MRR"), by_category)
        print()


def run(path: str | os.PathLike[str] | None = None, embed: Any = None) -> None:
    """Print the tables: of the LoCoMo file at `path` (default: what LOCOMO in the environment names), else of
    the project's own conversation. `embed`: an embedder to measure as well."""
    path = path or os.environ.get("LOCOMO") or None
    if path is None:
        print(SKIPPED)
        conversation = own_conversation()
        title = f"own conversation: {len(conversation.memories)} memories"
        report(title, compare([conversation], embed))
        return
    conversations = locomo(path)
    found = compare(conversations, embed)
    for title, part in (("chosen on: first five", slice(5)), ("held out: the others", slice(5, None))):
        number = sum(len(conversation.questions) for conversation in conversations[part])
        report(f"{title}, {number} questions", {name: answers_[part] for name, answers_ in found.items()})


def main() -> None:
    """`run` with arguments."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("path", nargs="?", help="the LoCoMo file")
    parser.add_argument("--model", action="store_true", help="with the offline model as well")
    parser.add_argument("--model-folder", help="where the model's files are, if its wheel is not installed")
    arguments = parser.parse_args()
    embed = None
    if arguments.model or arguments.model_folder:
        from mycelium_sdk.embedders import MiniLM

        embed = MiniLM(arguments.model_folder)
    run(arguments.path, embed)


if __name__ == "__main__":
    main()
