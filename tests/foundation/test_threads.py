"""A lock that a forked child goes on with, whoever held it."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import pytest

from mycelium_sdk.threads import ThreadLock

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.timeout(60)


def in_child(check: Callable[[], bool]) -> bool:
    """Whether it holds in a forked child."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if check() else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def in_thread(check: Callable[[], bool]) -> bool:
    answers: list[bool] = []
    thread = threading.Thread(target=lambda: answers.append(check()))
    thread.start()
    thread.join()
    return answers == [True]


def freely(lock: ThreadLock) -> bool:
    """Whether nobody else holds it; nothing is waited for."""
    if not lock.acquire(timeout=0.0):
        return False
    lock.release()
    return True


def test_one_thread_at_a_time_and_that_one_again() -> None:
    lock = ThreadLock()
    held = [lock.mine]
    with lock, lock:
        held.append(lock.mine)
        assert in_thread(lambda: not freely(lock) and not lock.mine)
    held.append(lock.mine)
    assert held == [False, True, False]
    assert in_thread(lambda: freely(lock))
    with pytest.raises(RuntimeError):
        lock.release()


def test_only_its_holder_gives_it_back() -> None:
    lock = ThreadLock()

    def give_back() -> bool:
        with pytest.raises(RuntimeError):
            lock.release()
        return True

    with lock:
        assert in_thread(give_back)
        assert lock.mine


def test_a_child_does_not_wait_for_a_thread_that_it_does_not_have() -> None:
    lock = ThreadLock()
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    try:
        assert in_child(lambda: not lock.mine and freely(lock))
        assert not freely(lock), "in the parent it is held as before"
    finally:
        done.set()
        thread.join()
    assert freely(lock)


def test_what_the_forking_thread_held_it_holds_in_the_child() -> None:
    lock = ThreadLock()

    def check() -> bool:
        return lock.mine and in_thread(lambda: not freely(lock))

    with lock, lock:
        assert in_child(check)
        child = os.fork()
        if child == 0:
            lock.release()
            lock.release()
            os._exit(0 if in_thread(lambda: freely(lock)) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_locks_are_forgotten_with_their_owners() -> None:
    from mycelium_sdk import threads

    before = len(threads._made)
    kept = [ThreadLock() for _ in range(10)]
    assert len(threads._made) == before + 10
    kept.clear()
    assert len(threads._made) <= before
