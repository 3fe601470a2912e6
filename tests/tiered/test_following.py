"""The secondary follows the primary, at once or later, and nothing that it lacks is forgotten about."""

from __future__ import annotations

import itertools
import os
import signal
import threading
from typing import TYPE_CHECKING

import pytest

from mycelium_sdk import canonical
from mycelium_sdk.backends.base import Addition
from mycelium_sdk.backends.local import LocalVectorBackend
from mycelium_sdk.backends.tiered import TieredBackend, upkeep
from mycelium_sdk.errors import InputError, NonCanonical, StoreLocked
from mycelium_sdk.records import Record
from tests.backends.minimal import ListBackend
from tests.backends.test_conformance import OWNER

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mycelium_sdk.backends.base import BaseBackend
    from tests.tiered.conftest import Shaky


def _texts(backend: BaseBackend) -> list[str]:
    return [one.record.content for one in backend.iter_records()]


def test_what_is_written_goes_to_both(tier: Callable[..., TieredBackend], shaky: Shaky) -> None:
    store = tier()
    first = store.remember("one", ["t"], session="s")
    store.remember_many(["three", "two"])
    assert _texts(shaky) == ["one", "three", "two"]
    assert [one.record.content for one in sorted(shaky.iter_records(), key=lambda one: one.sequence)] == [
        "one", "three", "two",
    ]  # fmt: skip
    assert shaky.all_records()[0].session == "s"
    assert shaky.all_records()[0].time == store.all_records()[0].time
    store.forget(first)
    assert _texts(shaky) == ["three", "two"]
    store.forget(tag="none")
    store.import_blob(canonical.encode(OWNER, [Record("x"), Record("x"), Record("y", ("b", "b"))]))
    assert shaky.export_blob() == store.export_blob()
    store.clear()
    assert _texts(shaky) == []
    assert not store.lag()


def test_a_secondary_that_is_down_costs_nothing_but_lag(
    tier: Callable[..., TieredBackend], shaky: Shaky
) -> None:
    store = tier()
    kept, gone = store.remember_many(["kept", "gone"])
    shaky.down = True
    store.remember("later")
    store.forget(gone)
    lag = store.lag()
    assert lag
    assert (lag.waiting, lag.error) == (2, "the cloud is down")
    assert lag.retry_at is not None
    calls = len(shaky.calls)
    store.remember("not even tried before the pause ends")
    assert len(shaky.calls) == calls
    store.close()

    shaky.down = False
    again = tier()
    assert again.lag().waiting == 3
    assert not again.catch_up()
    assert shaky.root() == again.root()
    assert again.recall("kept")[0]["id"] == kept


def test_a_secondary_that_hangs_costs_the_patience_only(
    tier: Callable[..., TieredBackend], shaky: Shaky
) -> None:
    store = tier(patience=0.05)
    shaky.answers.clear()
    store.remember("one")
    store.remember("two")
    assert store.lag().waiting == 2
    assert shaky.calls == ["add"]
    shaky.answers.set()
    assert not store.catch_up()
    assert _texts(shaky) == ["one", "two"]


def test_a_secondary_that_hangs_does_not_stop_recall(
    tier: Callable[..., TieredBackend], shaky: Shaky
) -> None:
    store = tier(patience=0.05)
    store.remember("one")
    store.catch_up()
    shaky.answers.clear()
    assert [hit["content"] for hit in store.recall("one")] == ["one"]
    assert store.lag().error == "it did not answer in time"
    calls = len(shaky.calls)
    assert [hit["content"] for hit in store.recall("one")] == ["one"]
    assert len(shaky.calls) == calls  # not asked again before the pause ends


def test_what_the_secondary_cannot_hold_is_reported_and_stops_nothing_else(
    tier: Callable[..., TieredBackend], shaky: Shaky
) -> None:
    store = tier()
    shaky.unholdable = "odd"
    _, odd, _ = store.remember_many(["a", "something odd", "z"])
    assert _texts(shaky) == ["a", "z"]
    assert store.lag().refused == ((odd, "the cloud cannot hold this text"),)
    assert store.lag().waiting == 0
    store.remember("more")
    assert len(store.lag().refused) == 1
    shaky.unholdable = None
    assert store.repair().equal
    assert not store.lag()
    assert _texts(shaky) == ["a", "more", "something odd", "z"]


def test_a_refused_memory_that_is_forgotten_is_no_lag(
    tier: Callable[..., TieredBackend], shaky: Shaky
) -> None:
    store = tier()
    shaky.unholdable = "odd"
    store.forget(store.remember("odd"))
    assert not store.lag()


def test_forgetting_securely_is_secure_in_both(tier: Callable[..., TieredBackend], shaky: Shaky) -> None:
    store = tier()
    ids = store.remember_many(["plain", "secret"])
    store.forget(ids[0])
    store.forget(ids[1], secure=True)
    assert shaky.secure == [False, True]
    shaky.down = True
    store.remember("another secret", ["t"])
    store.clear(secure=True)
    shaky.down = False
    assert not store.catch_up()
    assert shaky.secure[-1] is True
    assert _texts(shaky) == []


def test_a_writer_that_dies_before_it_is_done_leaves_an_entry_too_many(
    tier: Callable[..., TieredBackend], shaky: Shaky, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tier()

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(store._queue, "conclude", killed)  # the moment between two files
        with pytest.raises(KeyboardInterrupt):
            store.remember("written, and then the process ended")
    assert _texts(shaky) == []
    assert store.count() == store.lag().waiting == 1
    assert not tier().catch_up()
    assert _texts(shaky) == ["written, and then the process ended"]


def test_a_writer_at_work_is_not_overtaken(
    tier: Callable[..., TieredBackend], shaky: Shaky, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever carries out the queue between its announcement and its write must leave it there."""
    monkeypatch.setattr(upkeep, "_QUIET_SECONDS", 0.0)
    store, other = tier(), tier()
    real = store.primary.add

    def add(additions: object) -> list[str]:
        other.catch_up()
        assert other.lag().waiting == 1
        return real(additions)  # type: ignore[arg-type]

    store.primary.add = add  # type: ignore[method-assign]
    store.remember("one")
    assert not store.catch_up()
    assert _texts(shaky) == ["one"]


def test_an_import_that_fails_leaves_no_lag(tier: Callable[..., TieredBackend], shaky: Shaky) -> None:
    store = tier()
    store.remember("one")
    with pytest.raises(NonCanonical):
        store.import_blob(b"{}")
    assert not store.lag()
    shaky.down = True
    store.import_blob(canonical.encode(OWNER, [Record("two")]))
    with pytest.raises(NonCanonical):
        store.import_blob(b"{}")
    assert store.lag().everything
    shaky.down = False
    assert not store.catch_up()
    assert _texts(shaky) == ["two"]


def test_a_primary_that_fails_changes_nothing(
    tier: Callable[..., TieredBackend], shaky: Shaky, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tier()

    def locked(_: object) -> list[str]:
        raise StoreLocked("in use")

    with monkeypatch.context() as patched:
        patched.setattr(store.primary, "add", locked)
        with pytest.raises(StoreLocked):
            store.remember("never written")
    assert not store.catch_up()
    assert _texts(shaky) == _texts(store) == []


def test_forgetting_by_tag_while_others_write(tier: Callable[..., TieredBackend], shaky: Shaky) -> None:
    store = tier()
    store.remember("one", ["t"])
    real = store.primary.remove

    def remove(selection: object, *, secure: bool) -> int:
        store.primary.add(
            [_addition_of("two", "t")]  # by a process of its own, which brings it to the secondary as well
        )
        shaky.add([_addition_of("two", "t")])
        return real(selection, secure=secure)  # type: ignore[arg-type]

    store.primary.remove = remove  # type: ignore[method-assign]
    assert store.forget(tag="t") == 2
    assert not store.catch_up()
    assert _texts(shaky) == []


def _addition_of(text: str, tag: str) -> Addition:
    return Addition(Record(text, (tag,)), None, None)


def test_the_two_belong_to_one_owner(tmp_path: Path) -> None:
    another = ListBackend("GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ")
    with pytest.raises(InputError, match="different owners"):
        TieredBackend(ListBackend(OWNER), another, queue=tmp_path / "queue.db")


def test_many_threads_and_a_flapping_secondary(tier: Callable[..., TieredBackend], shaky: Shaky) -> None:
    store = tier(patience=0.01)
    stop = threading.Event()

    def flap() -> None:
        while not stop.is_set():
            shaky.down = not shaky.down
            stop.wait(0.003)

    def work(name: int) -> None:
        for number in range(30):
            mine = store.remember(f"thread {name} note {number}")
            if number % 3 == 0:
                store.forget(mine)
            store._queue.retry_now()  # or nothing would be tried again for seconds

    threads = [threading.Thread(target=flap)] + [
        threading.Thread(target=work, args=(name,)) for name in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads[1:]:
        thread.join()
    stop.set()
    threads[0].join()
    shaky.down = False
    assert not store.catch_up()
    assert shaky.root() == store.root()
    assert store.count() == 4 * 20


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # the runner itself may have threads
@pytest.mark.parametrize("acknowledged", [1, 13, 40])
def test_after_a_kill_the_secondary_still_follows(tmp_path: Path, acknowledged: int) -> None:
    def opened() -> TieredBackend:
        first, second = (LocalVectorBackend(OWNER, tmp_path / f"{name}.db") for name in "ab")
        return TieredBackend(first, second, queue=tmp_path / "queue.db")

    heard, said = os.pipe()
    child = os.fork()
    if child == 0:
        store = opened()
        for number in itertools.count():
            name = store.remember(f"note {number}")
            if number % 3 == 0:
                store.forget(name)
            os.write(said, b".")
    os.close(said)
    with os.fdopen(heard, "rb") as dots:
        dots.read(acknowledged)
        os.kill(child, signal.SIGKILL)
        written = acknowledged + len(dots.read())
    os.waitpid(child, 0)
    with opened() as store:
        assert not store.catch_up()
        assert store.secondary.root() == store.primary.root()
        assert store.count() >= written - (written + 2) // 3
