"""Progress: on a terminal only, after a second, in one line that leaves nothing behind."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from mycelium_cli import output
from mycelium_cli.meter import Meter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .conftest import Cli


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@contextlib.contextmanager
def terminal() -> Iterator[int]:
    """stderr is a terminal, whose end to read is given. No fixture: pytest sets stderr after those."""
    ours, theirs = os.openpty()
    with open(theirs, "w", encoding="utf-8") as stream, pytest.MonkeyPatch.context() as patch:  # noqa: PTH123
        patch.setattr(sys, "stderr", stream)
        yield ours
    os.close(ours)


def read_until(descriptor: int, end: str) -> str:
    """What the terminal shows up to `end`; waits for it."""
    seen = ""
    while end not in seen:
        seen += os.read(descriptor, 4096).decode()
    return seen


def test_nothing_is_said_within_a_second_and_then_one_line_is_kept_up_to_date() -> None:
    clock, stream = Clock(), io.StringIO()
    meter = Meter("importing", stream, clock)
    meter.report("reading", 7, None)
    clock.now += 0.99
    meter.tick()
    with meter.hidden():
        assert stream.getvalue() == ""
    clock.now += 0.02
    meter.tick()
    meter.tick()
    assert stream.getvalue() == "\rimporting: reading 7 ... 1 s", "the same line is not written again"
    meter.report("storing", 50_000, 200_000)
    clock.now += 2
    meter.tick()
    assert stream.getvalue().endswith("\rimporting: storing 50,000 of 200,000 (25 %) ... 3 s")
    length = len("importing: storing 50,000 of 200,000 (25 %) ... 3 s")
    for _ in range(2):
        with meter.hidden():
            assert stream.getvalue().endswith(f"3 s\r{' ' * length}\r")
    assert "\n" not in stream.getvalue()


def test_a_shorter_line_leaves_nothing_of_a_longer_one() -> None:
    clock, stream = Clock(), io.StringIO()
    meter = Meter("x", stream, clock)
    clock.now += 5
    meter.report("reading", 1_000_000, None)
    meter.tick()
    meter.report("a", 1, 0)
    meter.tick()
    _, long, short = stream.getvalue().split("\r")
    assert short == "x: a 1 ... 5 s".ljust(len(long))


def test_work_without_counts_says_how_long_it_takes() -> None:
    clock, stream = Clock(), io.StringIO()
    meter = Meter("anchoring", stream, clock)
    clock.now += 61.4
    meter.tick()
    assert stream.getvalue() == "\ranchoring ... 61 s"


def test_a_line_is_never_wider_than_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, stream = Clock(), io.StringIO()
    monkeypatch.setattr(Meter, "_columns", lambda _: 12)
    meter = Meter("doing something", stream, clock)
    clock.now += 2
    meter.tick()
    assert stream.getvalue() == "\rdoing somet"


def test_on_a_terminal_it_is_shown_and_taken_away() -> None:
    clock = Clock()
    line = "verifying: checking 3 of 10 (30 %) ... 4 s"
    with terminal() as shown, output.progress("verifying", clock=clock):
        output.report_progress("checking", 3, 10)
        clock.now += 4
        assert read_until(shown, "4 s") == f"\r{line}"
        output.to_stderr("note: something")
        assert read_until(shown, "\n").startswith(f"\r{' ' * len(line)}\rnote: something\r\n")


def test_work_that_is_quick_shows_nothing() -> None:
    with terminal() as shown:
        with output.progress("verifying", clock=Clock()):
            output.report_progress("checking", 3, 10)
        output.to_stderr("done")
        assert read_until(shown, "\n") == "done\r\n"


def test_work_that_fails_leaves_no_thread_and_no_line() -> None:
    clock = Clock()
    before = threading.active_count()

    def fail(shown: int) -> None:
        with output.progress("waiting", clock=clock):
            clock.now += 9
            read_until(shown, "9 s")
            raise ZeroDivisionError

    with terminal() as shown:
        with pytest.raises(ZeroDivisionError):
            fail(shown)
        assert threading.active_count() == before
        output.to_stderr("done")
        assert read_until(shown, "\n").endswith("\rdone\r\n")


def test_where_stderr_is_no_terminal_nothing_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    clock, before = Clock(), threading.active_count()
    with output.progress("waiting", clock=clock):
        clock.now += 100
        output.report_progress("checking", 3, 10)
        assert threading.active_count() == before
    assert capsys.readouterr() == ("", "")


@pytest.mark.usefixtures("wallet")
def test_the_commands_are_told_how_far_the_memory_is(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr("mycelium_cli.session.report_progress", lambda what, *_: told.append(what))
    monkeypatch.setattr("mycelium_cli.commands.transfer.report_progress", lambda what, *_: told.append(what))
    monkeypatch.setattr("mycelium_sdk.backends.local.progress._QUIET", 0.0)

    def telling(*command: str, stdin: bytes = b"") -> set[str]:
        told.clear()
        outcome = cli("memory", *command, stdin=stdin)
        assert outcome.code in {0, 7}, outcome.err
        return set(told)

    many = b"".join(b"memory %d\n" % number for number in range(10_001))
    assert telling("import", "-", "--lines", stdin=many) == {"reading"}
    assert telling("recall", "memory") == {"indexing"}
    assert telling("export", "out.jsonl") == {"checking", "sorting", "writing"}
    assert "checking" in telling("anchor")
    assert "checking" in telling("verify")
    cli("memory", "remember", "five")
    assert {"reading"} <= telling("rehydrate", "--on-conflict", "merge")
