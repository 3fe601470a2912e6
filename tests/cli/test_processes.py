"""The command line as a process: locales, closed pipes, bytes that are no text, Ctrl-C, terminals."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mycelium_sdk.wallet import Wallet

from .conftest import TIMEOUT
from .terminal import CTRL_C, CTRL_D, clean, interrupt, unread

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Cli, Process
    from .terminal import Terminal

C_LOCALE = {"LC_ALL": "C", "LANG": "C"}
ASCII_ONLY = {**C_LOCALE, "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
LOCALES = pytest.mark.parametrize(
    "env", [{"LC_ALL": "C.UTF-8"}, C_LOCALE, ASCII_ONLY], ids=["utf8", "c", "ascii"]
)


@LOCALES
def test_text_is_utf8_in_every_locale(ended: Any, wallet: Wallet, env: dict[str, str]) -> None:
    remembered = ended("memory", "remember", "kött på ön 🌿", "--tag", "språk", env=env)
    assert (remembered.code, remembered.err) == (0, "")
    shown = ended("memory", "recall", "kött", env=env)
    assert shown.code == 0
    assert "kött på ön 🌿" in shown.out
    assert "språk" in shown.out
    piped = ended("memory", "remember", "-", "--json", stdin="kött på ön 🌿\n".encode(), env=env)
    assert piped.code == 0
    (hit,) = ended("memory", "recall", "kött", "--json", "--tag", "språk", env=env).json
    assert hit["content"] == "kött på ön 🌿"


@LOCALES
@pytest.mark.parametrize("bad", [b"caf\xe9", b"\xed\xa0\x80", b"\xff"], ids=["latin1", "surrogate", "ff"])
def test_arguments_that_are_not_utf8_are_refused(
    ended: Any, wallet: Wallet, own_home: Path, env: dict[str, str], bad: bytes
) -> None:
    outcome = ended(b"memory", b"remember", bad, b"--json", env=env)
    assert outcome.code == 2
    assert outcome.json["error"]["message"] == "argument 3 is not valid UTF-8"
    assert outcome.err.startswith("error: argument 3 is not valid UTF-8\nhint: ")
    assert not own_home.exists()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--help",), 0),
        (("memory", "recall", "tea"), 0),
        (("memory", "recall", "tea", "--json"), 0),
        (("memory", "recall", "tea", "-k", "-1", "--json"), 2),
        (("doctor",), 0),
    ],
)
def test_a_reader_that_has_gone_changes_nothing(
    process: Process, ended: Any, wallet: Wallet, arguments: tuple[str, ...], code: int
) -> None:
    assert ended("memory", "remember", "tea " * 30_000).code == 0
    with process(*arguments) as started:
        assert started.stdout is not None
        assert started.stderr is not None
        started.stdout.close()
        error = started.stderr.read().decode()
        assert started.wait(TIMEOUT) == code
    assert clean(error), error


def test_errors_for_nobody_end_quietly(process: Process, wallet: Wallet) -> None:
    with process("memory", "recall", "x", "-k", "-1") as started:
        assert started.stdout is not None
        assert started.stderr is not None
        started.stderr.close()
        assert started.stdout.read() == b""
        assert started.wait(TIMEOUT) == 2


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&-"])
def test_closed_streams_are_no_reason_to_fail(wallet: Wallet, closed: str) -> None:
    command = f'"{sys.executable}" -m mycelium_cli memory remember x {closed}'
    done = subprocess.run(["sh", "-c", command], capture_output=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 0, done.stderr
    assert clean(done.stderr.decode())


def test_stdin_that_is_closed_is_an_error(wallet: Wallet) -> None:
    command = f'"{sys.executable}" -m mycelium_cli memory remember - <&-'
    done = subprocess.run(["sh", "-c", command], capture_output=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 2
    assert b"closed" in done.stderr


def test_an_export_to_a_closed_stdout_is_no_success(cli: Cli, wallet: Wallet) -> None:
    assert cli("memory", "remember", "tea").code == 0
    command = f'"{sys.executable}" -m mycelium_cli memory export >&-'
    done = subprocess.run(["sh", "-c", command], capture_output=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(b"error: the result cannot be written: Bad file descriptor\nhint: ")


@pytest.mark.parametrize(
    "arguments",
    [
        ("wallet", "show"),
        ("--version",),
        ("--help",),
        ("memory", "--help"),
        ("memory", "export", "--help"),
        ("--json", "--help"),
    ],
)
def test_a_full_disk_is_said_plainly(process: Process, wallet: Wallet, arguments: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full, process(*arguments, stdout=full) as started:
        assert started.stderr is not None
        error = started.stderr.read().decode()
        assert started.wait(TIMEOUT) == 1
    assert error.startswith("error: the result cannot be written: No space left on device\nhint: ")
    assert clean(error)


def test_without_a_terminal_no_passphrase_is_asked_for(ended: Any) -> None:
    outcome = ended("memory", "remember", "x", env={"MYCELIUM_DECRYPT_KEY": ""})
    assert outcome.code == 4
    assert outcome.err.splitlines()[-2:] == [
        "error: a passphrase must be chosen for the new wallet, and there is no terminal to ask for it",
        "hint: set the environment variable MYCELIUM_DECRYPT_KEY",
    ]


def test_a_person_is_asked_twice_without_echo(at_terminal: Callable[..., Terminal]) -> None:
    terminal = at_terminal("memory", "remember", "first")
    for answers in ((b"one\n", b"two\n"), (b"open sesame\n", b"open sesame\n")):
        for prompt, answer in zip(("new wallet: ", "once more: "), answers, strict=True):
            terminal.until(prompt)
            terminal.types(answer)
            terminal.seen = terminal.seen.replace(prompt, "")
    assert "not the same" in terminal.seen
    assert terminal.rest() == 0
    assert "remembered, id " in terminal.seen
    assert "sesame" not in terminal.seen
    assert Wallet.load(Path(".mycelium/wallet.json")).unlock("open sesame").seed.startswith("S")


def test_a_person_who_pipes_a_text_in_is_asked_at_the_terminal(at_terminal: Callable[..., Terminal]) -> None:
    terminal = at_terminal("memory", "remember", "-", piped="from git log\n")
    for prompt in ("new wallet: ", "once more: "):
        terminal.until(prompt)
        terminal.types(b"open sesame\n")
    assert terminal.rest() == 0, terminal.seen
    assert "remembered, id " in terminal.seen
    assert "sesame" not in terminal.seen
    assert Wallet.load(Path(".mycelium/wallet.json")).unlock("open sesame").seed.startswith("S")


def test_an_empty_passphrase_is_missing(at_terminal: Callable[..., Terminal]) -> None:
    terminal = at_terminal("wallet", "new")
    terminal.until("new wallet: ")
    terminal.types(b"\n")
    assert terminal.rest() == 4
    assert "error: the passphrase is empty" in terminal.seen
    assert "hint: run it again and type one" in terminal.seen
    assert not Path(".mycelium").exists()


def test_ctrl_c_at_the_prompt_makes_nothing(at_terminal: Callable[..., Terminal]) -> None:
    terminal = at_terminal("wallet", "new")
    terminal.until("new wallet: ")
    interrupt(terminal.process, lambda: terminal.types(CTRL_C))
    assert terminal.rest() == 130
    assert "error: interrupted" in terminal.seen
    assert clean(terminal.seen)
    assert not Path(".mycelium").exists()


def test_ctrl_d_at_the_prompt_is_no_passphrase(at_terminal: Callable[..., Terminal]) -> None:
    terminal = at_terminal("wallet", "new")
    terminal.until("new wallet: ")
    terminal.types(CTRL_D)
    assert terminal.rest() == 4
    assert "error: no passphrase was given" in terminal.seen


def test_one_passphrase_is_enough_for_the_first_anchor(at_terminal: Callable[..., Terminal]) -> None:
    terminal = at_terminal("memory", "anchor")
    for prompt in ("new wallet: ", "once more: "):
        terminal.until(prompt)
        terminal.types(b"open sesame\n")
    assert terminal.rest() == 0
    assert "version      1" in terminal.seen
    assert "Passphrase of the wallet" not in terminal.seen
    again = at_terminal("memory", "anchor")
    again.until("Passphrase of the wallet: ")
    again.types(b"open sesame\n")
    assert again.rest() == 0
    assert "version      2" in again.seen


def test_an_interrupt_while_stdin_is_read(process: Process, own_home: Path) -> None:
    with process("memory", "remember", "-", "--json", stdin=subprocess.PIPE) as started:
        assert started.stdin is not None
        started.stdin.write(b"x" * 1000)
        started.stdin.flush()
        while unread(started.stdin.fileno()):
            pass  # once it is read, the command waits for more
        interrupt(started, lambda: started.send_signal(signal.SIGINT))
        assert started.returncode == 130
        assert started.stdout is not None
        assert started.stderr is not None
        assert started.stdout.read() == b""
        assert started.stderr.read() == b"\nerror: interrupted\n"
    assert not own_home.exists()


SEEN = """
import json, sys
from mycelium_cli.main import run
code = run(sys.argv[1:])
sys.stderr.write(json.dumps([code, sorted(sys.modules)]))
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("memory", "--help"),
        ("memory", "anchor", "--help"),
        ("memory", "remember", "x", "--tag", "y"),
        ("memory", "recall", "x"),
        ("memory", "status", "--local"),
        ("wallet", "show"),
    ],
    ids=" ".join,
)
def test_what_needs_no_chain_loads_none(wallet: Wallet, arguments: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SEEN, *arguments], capture_output=True, timeout=TIMEOUT, check=True
    )
    # Notes come before; the list is the last line.
    code, modules = json.loads(done.stderr.decode().splitlines()[-1])
    assert code == 0
    heavy = {"stellar_sdk", "mycelium_localnet", "numpy", "cryptography", "requests", "asyncio", "ssl"}
    assert heavy.isdisjoint(modules)
    assert "mycelium_sdk.chain.rpc" not in modules
    if "--help" in arguments:
        assert "sqlite3" not in modules
        assert "mycelium_sdk.config" not in modules
