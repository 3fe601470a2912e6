"""A full disk, a file system that cannot be written, a folder that is not there: said, and nothing lost."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import pytest

from tests.memory.conftest import PASSPHRASE

if TYPE_CHECKING:
    from pathlib import Path

_ALONE = ["unshare", "--mount"] if os.getuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]

# The home folder lies on a file system of eight megabytes that only this process sees; `ballast` fills it.
# Wallet and chain lie elsewhere. `with refused(...)` checks the error, and that it names what to do.
_PRELUDE = """
    import contextlib, os, pathlib, shutil, subprocess, sys
    from mycelium_sdk.config import load_configuration
    from mycelium_sdk.context import AgentContext
    from mycelium_sdk.errors import BackendError, BlobError, PublishFailed
    from mycelium_sdk.memory import AgentMemory
    from mycelium_sdk.steps import Step, observed
    from mycelium_sdk.verdicts import Verdict
    from mycelium_sdk.wallet import Wallet

    base = pathlib.Path(sys.argv[1])
    disk = base / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=700", "none", str(disk)], check=True)
    wallet = Wallet.create(base / "private" / "wallet.json", os.environ["MYCELIUM_DECRYPT_KEY"])
    ballast = disk / "ballast"
    keypair = None

    @contextlib.contextmanager
    def memory(home="disk/home"):
        global keypair
        configuration = load_configuration(
            start=base,
            env={"MYCELIUM_HOME": str(base / home)},
            overrides={"onchain.chain_file": str(base / "chain.db"), "wallet.path": str(wallet.path)},
        )
        with AgentContext(configuration=configuration) as context:
            context._keypair = keypair  # unlocked once
            keypair = context.keypair()
            with AgentMemory(context) as opened:
                yield opened

    def fill():
        with ballast.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                pass

    def fill_at(label):
        def observe(step):
            if step is label and not ballast.exists():
                fill()
        return observed(observe)

    def free():
        ballast.unlink()

    def read_only(folder):
        for options in (["--bind"], ["-o", "remount,bind,ro"]):
            subprocess.run(["mount", *options, str(folder), str(folder)], check=True)

    def writable(folder):
        subprocess.run(["umount", str(folder)], check=True)

    @contextlib.contextmanager
    def refused(kind, problem, hint):
        try:
            yield
        except kind as error:
            assert problem in str(error), error
            assert hint in (error.hint or ""), error.hint
        else:
            raise AssertionError("it was not refused")

    def full(kind=BackendError):
        return refused(kind, "the disk is full", "free some space")

    def unwritable(kind=BackendError):
        return refused(kind, "read-only", "can be written")

    def held(memory):
        return sorted(stored.record.content for stored in memory.backend.iter_records())
"""


def run(tmp_path: Path, script: str) -> None:
    program = textwrap.dedent(_PRELUDE) + textwrap.dedent(script)
    done = subprocess.run(
        [*_ALONE, sys.executable, "-W", "error", "-c", program, str(tmp_path)],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "MYCELIUM_DECRYPT_KEY": PASSPHRASE},
    )
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.fixture(autouse=True, scope="module")
def _mounting(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("probe")
    probe = [*_ALONE, "mount", "-t", "tmpfs", "none", str(folder)]
    if shutil.which("unshare") is None or subprocess.run(probe, check=False, capture_output=True).returncode:
        pytest.skip("this user may not mount a file system of its own")


def test_remembering_and_publishing_on_a_full_disk(tmp_path: Path) -> None:
    script = """
        with memory() as mine:
            mine.remember("one")
            assert mine.anchor() == 1
            mine.remember("two")
            fill()
            with full():
                for number in range(500):
                    mine.remember(f"{number} " + "x" * 20_000)
            kept = held(mine)
            assert "one" in kept
            with full(BlobError):
                mine.anchor()
            with full(BlobError):
                mine.anchor(publish=disk / "mem.json")
            assert mine.get_anchor()["version"] == 1
            assert mine.verify().verdict is Verdict.AHEAD
            free()
            assert held(mine) == kept
            mine.remember("three")
            assert mine.anchor(publish=disk / "mem.json") == 2
            assert mine.verify()
            assert not [path for path in disk.rglob("*.tmp")]
    """
    run(tmp_path, script)


def test_a_disk_that_is_full_before_sending_anchors_nothing_or_all(tmp_path: Path) -> None:
    """What was not sent is forgotten; what was is finished by the next run."""
    script = """
        version = 0
        for step in (Step.DESCRIBED, Step.INTENDED, Step.LINKED, Step.SIGNED):
            with memory() as mine:
                mine.remember(f"before {step}")
                version += 1
                assert mine.anchor() == version
                mine.remember(f"then {step}")
            with memory() as mine, fill_at(step), full():
                mine.anchor()
            with memory() as mine:
                sent = mine.get_anchor()["version"] > version
                assert sent is (step is Step.SIGNED), step
            free()
            version += sent
            with memory() as mine:
                assert f"then {step}" in held(mine)
                found = mine.verify()
                assert found.verdict is (Verdict.IN_SYNC if sent else Verdict.AHEAD), (step, found)
                assert found.settled == (version if sent else None), step
                mine.remember(f"after {step}")
                assert mine.verify().verdict is Verdict.AHEAD, step
                version += 1
                assert mine.anchor() == version
                assert mine.verify()
    """
    run(tmp_path, script)


def test_loading_on_a_full_disk_loads_nothing(tmp_path: Path) -> None:
    script = """
        with memory("elsewhere") as other:
            for number in range(40):
                other.remember(f"{number} " + "y" * 20_000)
            assert other.anchor() == 1
        with memory() as mine:
            mine.remember("here")
            fill()
            with full():
                mine.rehydrate(on_conflict="merge")
            assert held(mine) == ["here"]
            free()
            assert mine.rehydrate(on_conflict="merge")["records"] == 41
            assert mine.verify().verdict is Verdict.AHEAD
            assert mine.anchor() == 2
    """
    run(tmp_path, script)


def test_a_file_system_that_cannot_be_written(tmp_path: Path) -> None:
    script = """
        home = disk / "home"
        with memory() as mine:
            mine.remember("one")
            assert mine.anchor() == 1
        read_only(home)
        with unwritable(), memory() as mine:
            mine.remember("two")
        writable(home)
        with memory() as mine:
            assert held(mine) == ["one"]
            mine.remember("two")
            read_only(home / "blobs")
            with unwritable(BlobError):
                mine.anchor()
            writable(home / "blobs")
            assert mine.get_anchor()["version"] == 1
        read_only(home / "state")
        with unwritable(), memory() as mine:
            mine.anchor()
        writable(home / "state")
        with memory() as mine:
            assert held(mine) == ["one", "two"]
            assert mine.anchor() == 2
            assert mine.verify()
        fresh = disk / "fresh"
        fresh.mkdir(mode=0o700)
        read_only(fresh)
        with unwritable(), memory("disk/fresh") as mine:
            mine.rehydrate()
        writable(fresh)
        with memory("disk/fresh") as mine:
            assert mine.rehydrate() == {"version": 2, "records": 2}
    """
    run(tmp_path, script)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    script = """
        with memory() as mine:
            mine.remember("one")
            with refused(PublishFailed, "does not exist", "make it"):
                mine.anchor(publish=f"{disk}/missing/")
            with refused(BlobError, "its folder does not exist", "mkdir -p"):
                mine.anchor(publish=disk / "missing" / "mem.json")
            assert mine.get_anchor() is None
            (disk / "missing").mkdir()
            assert mine.anchor(publish=disk / "missing" / "mem.json") == 1
            (disk / "home" / "blobs").rename(disk / "blobs")
            mine.remember("two")
            assert mine.anchor() == 2, "an open memory makes its folder anew"
            state = (disk / "home" / "state").rename(disk / "state")
            mine.remember("three")
            with refused(BackendError, "was moved away or removed while it was open", "put it back"):
                mine.anchor()
            shutil.rmtree(disk / "home" / "state")
            state.rename(disk / "home" / "state")
            assert mine.anchor() == 3
        with memory() as mine:
            assert held(mine) == ["one", "three", "two"]
            assert mine.verify()
        missing = disk / "not there" / "memory.db"
        with refused(BackendError, "its folder does not exist", "mkdir -p"), memory() as mine:
            AgentMemory(mine.context, backend="local", backend_kwargs={"path": missing})
        missing.parent.mkdir(mode=0o700)
        with memory() as mine, AgentMemory(mine.context, "local", None, {"path": missing}) as other:
            other.remember("one")
    """
    run(tmp_path, script)
