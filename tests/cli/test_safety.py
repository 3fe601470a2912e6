"""What signals, crashes, loose umasks and folders that cannot be written to leave behind."""

from __future__ import annotations

import os
import resource
import shlex
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mycelium_localnet import Chain
from mycelium_sdk.context import AgentContext
from mycelium_sdk.memory.agent_memory import AgentMemory
from tests.canaries import TEXT

from .conftest import PASSPHRASE, TIMEOUT
from .terminal import CTRL_C, clean, interrupt, unread

if TYPE_CHECKING:
    from collections.abc import Callable

    from mycelium_sdk.wallet import Wallet

    from .conftest import Process
    from .terminal import Terminal

CORE_PATTERN = Path("/proc/sys/kernel/core_pattern").read_text(encoding="ascii").strip()
ALONE = ["unshare", "--mount"] if os.getuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]


def wait_for_more(started: subprocess.Popen[bytes]) -> None:
    """Give the process a part of its input; it has read it, and waits for more, when this returns."""
    assert started.stdin is not None
    started.stdin.write(TEXT.encode())
    started.stdin.flush()
    while unread(started.stdin.fileno()):
        pass


def after(preparation: str, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    """Start a program from a shell that does something first and then becomes it. Its streams are piped."""
    return subprocess.Popen(
        ["sh", "-c", f'{preparation}; exec "$@"', "sh", sys.executable, *arguments],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options,
    )  # fmt: skip


REMEMBER = ("-m", "mycelium_cli", "memory", "remember", "-")
MAY_LEAVE_CORES = "ulimit -c unlimited"


# -- signals


def test_sigterm_ends_in_order(process: Process, own_home: Path) -> None:
    with process("memory", "remember", "-", "--json", stdin=subprocess.PIPE) as started:
        wait_for_more(started)
        interrupt(started, started.terminate)
        assert started.stdout is not None
        assert started.stderr is not None
        assert (started.returncode, started.stdout.read()) == (143, b"")
        assert started.stderr.read() == b"error: terminated\n"
    assert not own_home.exists()


def test_sigterm_that_is_ignored_stays_ignored(wallet: Wallet) -> None:
    with after("trap '' TERM", *REMEMBER) as started:
        wait_for_more(started)
        started.terminate()
        out, err = started.communicate(timeout=TIMEOUT)
    assert (started.returncode, err) == (0, b"")
    assert out.startswith(b"remembered, id ")


@pytest.mark.parametrize(("pressed", "code"), [(True, 130), (False, 143)], ids=["ctrl-c", "sigterm"])
def test_a_signal_while_the_chain_does_not_answer(
    at_terminal: Callable[..., Terminal], own_home: Path, wallet: Wallet, *, pressed: bool, code: int
) -> None:
    own_home.mkdir(mode=0o700)
    file = own_home / "localnet" / "chain.db"
    file.parent.mkdir(mode=0o700)
    with Chain.open(file) as chain:
        chain.fault("slow", count=100, seconds=600.0)
    terminal = at_terminal("memory", "status")
    terminal.until("asking the chain")
    interrupt(terminal.process, lambda: terminal.types(CTRL_C) if pressed else terminal.process.terminate())
    assert terminal.rest() == code
    assert ("error: interrupted" if pressed else "error: terminated") in terminal.seen
    assert clean(terminal.seen), terminal.seen


# -- crashes


def crashed(started: subprocess.Popen[bytes]) -> int:
    """The wait status of the process after SIGABRT."""
    os.kill(started.pid, signal.SIGABRT)
    _, status = os.waitpid(started.pid, 0)
    started.returncode = -signal.SIGABRT
    assert os.WTERMSIG(status) == signal.SIGABRT
    return status


@pytest.fixture
def cores(tmp_path: Path) -> Path:
    """A working folder for a process that may leave a core file there; the test is for machines that do."""
    folder = tmp_path / "cores"
    folder.mkdir()
    script = "import sys; sys.stdin.buffer.raw.read(100); sys.stdin.buffer.read()"
    with after(MAY_LEAVE_CORES, "-c", script, cwd=folder) as ordinary:
        wait_for_more(ordinary)
        if not os.WCOREDUMP(crashed(ordinary)):
            pytest.skip("this machine writes no core files at all")
    for core in folder.iterdir():
        core.unlink()
    return folder


def test_a_crash_leaves_no_core_file(wallet: Wallet, cores: Path) -> None:
    with after(MAY_LEAVE_CORES, *REMEMBER, cwd=cores) as started:
        wait_for_more(started)
        assert not os.WCOREDUMP(crashed(started))
    assert list(cores.iterdir()) == []


def test_a_core_that_is_taken_all_the_same_holds_no_memory(wallet: Wallet, cores: Path) -> None:
    """As a program gets it that the kernel pipes cores into, which no limit keeps from it."""
    if CORE_PATTERN.startswith(("|", "/")):
        pytest.skip("this machine puts core files elsewhere")
    with after(MAY_LEAVE_CORES, *REMEMBER, cwd=cores) as started:
        wait_for_more(started)
        _, highest = resource.prlimit(started.pid, resource.RLIMIT_CORE)
        resource.prlimit(started.pid, resource.RLIMIT_CORE, (highest, highest))
        assert os.WCOREDUMP(crashed(started))
    (core,) = cores.iterdir()
    data = core.read_bytes()
    core.unlink()
    assert data.startswith(b"\x7fELF")
    assert TEXT.encode() not in data
    assert PASSPHRASE.encode() not in data


# -- files


def loose(*folders: Path) -> dict[str, str]:
    """What others than the owner can use, of these folders and everything below them."""
    return {
        str(path): oct(stat.S_IMODE(path.lstat().st_mode))
        for folder in folders
        for path in (folder, *folder.rglob("*"))
        if path.lstat().st_mode & 0o077
    }


STORY = """
umask 000
set -e
printf 'first' | mycelium memory remember -
mycelium memory anchor
printf 'second' | mycelium memory remember - --tag a --session b
mycelium memory anchor --publish mem.json
mycelium memory status
mycelium memory verify
mycelium memory recall first
export MYCELIUM_CHAIN_FILE="$MYCELIUM_HOME/localnet/chain.db"
MYCELIUM_HOME="$MYCELIUM_HOME-b" mycelium memory rehydrate
mycelium doctor
"""


def test_a_loose_umask_loosens_nothing(own_home: Path, tmp_path: Path) -> None:
    command = f'mycelium() {{ {shlex.quote(sys.executable)} -m mycelium_cli "$@"; }}\n'
    done = subprocess.run(
        ["sh", "-c", command + STORY], capture_output=True, text=True, timeout=TIMEOUT, check=False
    )
    assert done.returncode == 0, done.stderr
    work = Path.cwd()
    made = [own_home, own_home.with_name("home-b"), *work.iterdir()]
    assert {path.name for path in made} >= {"home", "home-b", ".mycelium", "mem.json"}
    assert loose(*made) == {}


def test_a_loose_umask_loosens_no_file_of_an_open_database(own_home: Path, wallet: Wallet) -> None:
    before = os.umask(0)
    try:
        with AgentContext(passphrase=PASSPHRASE) as context, AgentMemory(context) as memory:
            memory.remember("x")
            memory.anchor()
            names = {path.name for path in own_home.rglob("*")}
            for database in (f"{wallet.address}.db", "state.db", "chain.db"):
                assert {database, f"{database}-wal", f"{database}-shm"} <= names
            assert loose(own_home) == {}
    finally:
        os.umask(before)
    assert loose(own_home) == {}


def test_a_home_that_cannot_be_written_to(ended: Any, wallet: Wallet, own_home: Path) -> None:
    assert ended("memory", "remember", "first").code == 0
    script = (
        f"mount --bind {shlex.quote(str(own_home))} {shlex.quote(str(own_home))}"
        f" && mount -o remount,bind,ro {shlex.quote(str(own_home))} || exit 99\n"
        f'"{sys.executable}" -m mycelium_cli memory "$@"'
    )
    if shutil.which("unshare") is None:
        pytest.skip("there is no unshare")
    for arguments in (["remember", "second"], ["anchor"]):
        done = subprocess.run(
            [*ALONE, "sh", "-c", script, "sh", *arguments],
            capture_output=True, text=True, timeout=TIMEOUT, check=False,
        )  # fmt: skip
        if done.returncode == 99:
            pytest.skip("nothing can be mounted here")
        assert (done.returncode, done.stdout) == (5, ""), done.stderr
        assert done.stderr.startswith(f"error: cannot use {own_home}/memory/")
        assert "\nhint: " in done.stderr
        assert clean(done.stderr)
    assert [hit["content"] for hit in ended("memory", "recall", "first", "--json").json] == ["first"]
