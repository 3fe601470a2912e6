"""The demonstration's steps, each run for real and checked; the first that misbehaves ends it."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from mycelium_cli.demo.conversation import Question, questions, turns
from mycelium_cli.demo.machine import Machine, Shared, wallet_of
from mycelium_cli.output import amount, duration, memories, shown
from mycelium_sdk.errors import MyceliumError, Rollback, Tampered, VersionConflict
from mycelium_sdk.verdicts import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from mycelium_sdk.memory.agent_memory import AgentMemory
    from mycelium_sdk.memory.anchoring import Anchoring

__all__ = ["Step", "StepFailed", "Story", "tell"]

_QUESTIONS = (3, 5, 12)
_K = 5
_LATER = (
    "[2026-07-02] Mara: The first firing in the Old Dairy worked, all 80 plates are whole.",
    "[2026-07-03] Mara: Note for the insurance: policy HB-20417 covers the kiln from today.",
)
_ASKED_LATER = Question("Which insurance policy covers the kiln?", (_LATER[1],))
_NOTE = "[2026-07-04] Fern: Mara wants the invoice for Noor and Felix Avelin sent on Monday."

Error = TypeVar("Error", bound=MyceliumError)


@dataclass(slots=True)
class Step:
    """One step: what happened, in sentences for a person and as data. `problem` says why it failed."""

    number: int
    title: str
    facts: list[str] = field(default_factory=list)
    data: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    problem: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "number": self.number,
            "title": self.title,
            "ok": self.problem is None,
            "problem": self.problem,
            "seconds": round(self.seconds, 3),
            "facts": self.facts,
            "data": self.data,
        }


class StepFailed(Exception):  # noqa: N818 - the names say what happened
    """A step did not behave as it must."""


def tell(folder: Path) -> Iterator[Step]:
    """Run the demonstration in an empty folder, step by step. The last step given is the failed one, if one
    failed.
    """
    with contextlib.closing(Story(folder)) as story:
        for number, (title, act) in enumerate(story.steps(), 1):
            step = Step(number, title)
            started = time.perf_counter()
            try:
                act(step)
            except StepFailed as failure:
                step.problem = str(failure)
            except MyceliumError as error:
                step.problem = f"{type(error).__name__}: {error.message}"
            step.seconds = time.perf_counter() - started
            yield step
            if step.problem is not None:
                return


class Story:
    """Two machines, one wallet, one chain, and somebody who tampers with what was published."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._shared = Shared(folder / "shared")
        self._passphrase = secrets.token_urlsafe(24)
        self._machines: dict[str, Machine] = {}
        self._unasked: list[str] = []
        self._first: Anchoring | None = None
        self._second: Anchoring | None = None
        self._genuine = b""

    def steps(self) -> list[tuple[str, Callable[[Step], None]]]:
        """Titles and actions, in order."""
        return [
            ("Machine A, a new home folder, imports a conversation", self.remember),
            ("Machine A anchors the memory", self.anchor),
            ("Machine B, with another home folder and only the wallet, loads the memory", self.rehydrate),
            ("Machine B recalls", self.recall),
            ("Machine A remembers more and anchors again", self.anchor_again),
            ("One byte of the published memory is changed: machine B must refuse it", self.tamper),
            ("Version 1 is served in place of version 2: machine B must refuse it", self.roll_back),
            ("Machine B, still at version 1, tries to anchor: it must be refused", self.anchor_stale),
            ("Machine A is lost. Machine B loads version 2, keeps its own note and goes on", self.survive),
        ]

    def close(self) -> None:
        """Stop all machines."""
        for machine in self._machines.values():
            machine.close()

    def remember(self, step: Step) -> None:
        """A wallet, a home folder, and the conversation in it."""
        from mycelium_sdk.wallet import Wallet

        Wallet.create(wallet_of(self._folder / "machine-a"), self._passphrase)
        memory = self._start("a").memory
        items = [turn.as_item() for turn in turns()]
        started = time.perf_counter()
        memory.backend.remember_many(items)
        seconds = time.perf_counter() - started
        count = memory.count()
        require(count == len(items), f"{count} of {len(items)} memories are there")
        step.facts += [f"account {memory.owner}", f"{memories(count)} in {duration(seconds)}"]
        step.data |= {"owner": memory.owner, "records": count, "remember_seconds": round(seconds, 4)}

    def anchor(self, step: Step) -> None:
        """Version 1. Account and contract are made on the way, since it is the first on this chain."""
        protocol = self._machines["a"].context.chain.identity().protocol
        step.facts.append(f"embedded chain, the network's own Soroban host, protocol {protocol}")
        step.data["protocol"] = protocol
        self._first = self._anchored("a", 1, step)

    def rehydrate(self, step: Step) -> None:
        """The other machine has nothing but the wallet file."""
        from mycelium_sdk.files import create_private

        source, target = (wallet_of(self._folder / name) for name in ("machine-a", "machine-b"))
        target.parent.mkdir(mode=0o700)
        create_private(target, source.read_bytes())
        memory = self._start("b").memory
        require(memory.count() == 0, "machine B is not empty")
        started = time.perf_counter()
        loaded = memory.rehydrate()
        seconds = time.perf_counter() - started
        found = memory.verify()
        require(bool(found), f"machine B's memory is {found.verdict}")
        require(memory.memory_root() == self._memory("a").memory_root(), "the two machines' roots differ")
        step.facts += [
            f"version {loaded['version']}, {loaded['records']} memories in {duration(seconds)}",
            f"verified: {found.verdict}, root {found.local_root.hex()}",
        ]
        step.data |= {**loaded, "verdict": str(found.verdict), "rehydrate_seconds": round(seconds, 4)}

    def recall(self, step: Step) -> None:
        """A few questions about the conversation, each answered by one of its turns."""
        asked = [self._asked("b", questions()[place], step) for place in _QUESTIONS]
        step.data["questions"] = asked

    def anchor_again(self, step: Step) -> None:
        """Version 2, which machine B does not know yet."""
        memory = self._memory("a")
        for text in _LATER:
            memory.remember(text, ["mara"], "s14")
        self._second = self._anchored("a", 2, step)
        self._genuine = self._published(self._second).read_bytes()

    def tamper(self, step: Step) -> None:
        """What stands at the URI of version 2 is changed by one byte."""
        assert self._second is not None  # noqa: S101 - the step before
        place = len(self._genuine) // 2
        forged = bytearray(self._genuine)
        forged[place] ^= 1
        self._published(self._second).write_bytes(forged)
        error = self._refused_load(Tampered)
        step.facts += [
            f"byte {place:,} of {len(forged):,}: {chr(self._genuine[place])!r} became {chr(forged[place])!r}",
            f"refused: {error.verdict}. {sentence(error)}",
        ]
        step.data |= {"byte": place, "verdict": str(error.verdict), "message": error.message}

    def roll_back(self, step: Step) -> None:
        """The genuine blob of version 1 is put at the URI of version 2."""
        assert self._first is not None  # noqa: S101 - an earlier step
        assert self._second is not None  # noqa: S101
        self._published(self._second).write_bytes(self._published(self._first).read_bytes())
        error = self._refused_load(Rollback)
        step.facts.append(f"refused: {error.verdict}. {sentence(error)}")
        step.data |= {"verdict": str(error.verdict), "message": error.message}

    def anchor_stale(self, step: Step) -> None:
        """Refused before anything is sent; and by the contract, for a client that does not check."""
        machine = self._machines["b"]
        machine.memory.remember(_NOTE, ["fern"], "s15")
        error = refused(VersionConflict, machine.memory.anchor)
        client = machine.context.anchor_client()
        root = machine.memory.memory_root()
        by_contract = refused(
            VersionConflict, lambda: client.set_anchor_if(machine.context.keypair(), 1, root, b"")
        )
        version = client.get_version(machine.memory.owner)
        require(version == 2, f"the chain is at version {version}")
        step.facts += [
            f"refused: {error.verdict}. {sentence(error)}",
            f"the contract itself refuses it too: {sentence(by_contract)}",
        ]
        step.data |= {
            "verdict": str(error.verdict),
            "message": error.message,
            "contract": {"expected": by_contract.expected, "actual": by_contract.actual},
        }

    def survive(self, step: Step) -> None:
        """Nothing is left of machine A but the chain and what it published."""
        assert self._second is not None  # noqa: S101 - an earlier step
        self._machines.pop("a").close()
        shutil.rmtree(self._folder / "machine-a")
        self._published(self._second).write_bytes(self._genuine)
        memory = self._memory("b")
        loaded = memory.rehydrate(on_conflict="merge")
        expected = len(turns()) + len(_LATER) + 1
        require(memory.count() == expected, f"{memory.count()} of {expected} memories are there")
        merged = memory.verify()
        require(merged.verdict is Verdict.AHEAD, f"the merged memory is {merged.verdict}")
        step.facts.append(
            f"version {loaded['version']} and the note: {memory.count()} memories, verified: {merged.verdict}"
        )
        self._anchored("b", 3, step)
        found = memory.verify()
        require(bool(found), f"machine B's memory is {found.verdict}")
        step.facts.append(f"verified: {found.verdict}")
        step.data |= {"records": memory.count(), "verdict": str(found.verdict)}
        step.data["questions"] = [self._asked("b", _ASKED_LATER, step)]

    # -- parts of steps

    def _start(self, name: str) -> Machine:
        machine = Machine(
            self._folder / f"machine-{name}",
            self._shared,
            passphrase=self._passphrase,
            notify=self._unasked.append,
        )
        self._machines[name] = machine
        return machine

    def _memory(self, name: str) -> AgentMemory:
        return self._machines[name].memory

    def _anchored(self, name: str, version: int, step: Step) -> Anchoring:
        machine = self._machines[name]
        machine.context.keypair()  # what a wallet's key derivation takes is no part of anchoring
        started = time.perf_counter()
        done = machine.memory.anchor_with_receipt()
        seconds = time.perf_counter() - started
        require(done.version == version, f"version {done.version} was anchored instead of {version}")
        step.facts += [
            *self._unasked,
            f"version {done.version}, root {done.root.hex()}",
            f"transaction {done.receipt.hash}",
            f"ledger {done.receipt.ledger}, fee {amount(done.receipt.fee_charged)}, {duration(seconds)}",
        ]
        self._unasked.clear()
        step.data |= {
            "version": done.version,
            "root": done.root.hex(),
            "uri": done.uri,
            "transaction": done.receipt.hash,
            "ledger": done.receipt.ledger,
            "fee_stroops": done.receipt.fee_charged,
            "anchor_seconds": round(seconds, 4),
        }
        return done

    def _asked(self, name: str, question: Question, step: Step) -> dict[str, Any]:
        started = time.perf_counter()
        hits = self._memory(name).recall(question.text, _K)
        seconds = time.perf_counter() - started
        contents = [hit["content"] for hit in hits]
        place = next(
            (
                place
                for place, content in enumerate(contents, 1)
                if any(content.endswith(text) for text in question.expected)
            ),
            None,
        )
        require(place is not None, f"no answer to the question: {question.text}")
        assert place is not None  # noqa: S101 - required above
        answer = contents[place - 1]
        step.facts += [
            question.text,
            f"  {shown(answer)}  (hit {place}, {duration(seconds)})",
        ]
        return {"question": question.text, "answer": answer, "place": place, "seconds": round(seconds, 4)}

    def _refused_load(self, kind: type[Error]) -> Error:
        """Machine B refuses to load what is published, and holds afterwards what it held before."""
        memory = self._memory("b")
        before = memory.memory_root()
        error = refused(kind, memory.rehydrate)
        require(memory.memory_root() == before, "machine B's memory changed")
        return error

    @staticmethod
    def _published(done: Anchoring) -> Path:
        from mycelium_sdk.blobs.file_uri import path_from_file_uri

        return path_from_file_uri(done.uri)


def refused(kind: type[Error], action: Callable[[], object]) -> Error:
    """The error of this kind that `action` raises. Raises StepFailed if it raises another one, or none."""
    try:
        action()
    except kind as error:
        return error
    except MyceliumError as error:
        raise StepFailed(f"refused, but as {type(error).__name__}: {error.message}") from error
    raise StepFailed(f"accepted, though it must be refused as {kind.__name__}")


def require(holds: bool, otherwise: str) -> None:
    """Raise StepFailed unless it holds."""
    if not holds:
        raise StepFailed(otherwise)


def sentence(error: MyceliumError) -> str:
    """The error's message as a sentence."""
    return f"{error.message[:1].upper()}{error.message[1:]}."
