"""The watch over secrets notices every way out that it watches, also in the processes of pytest-xdist."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tests.canaries import PASSPHRASE, SEED, TEXT

ROOT = Path(__file__).parents[2]

CONFTEST = """
    from tests.canaries.watch import begin, watched_folders

    __all__ = ["watched_folders"]

    def pytest_configure(config):
        begin(config)
"""

LEAKING = """
    import logging, os, subprocess, sys
    import pytest
    from mycelium_sdk.errors import InputError, MyceliumError
    from mycelium_sdk.records import Record
    from mycelium_sdk.wallet import Wallet
    from tests.canaries import PASSPHRASE, SEED, TEXT
    from tests.canaries.watch import NAME

    def test_log():
        logging.getLogger("some.where").debug("remembering %s", TEXT)

    def test_log_without_propagation():
        quiet = logging.getLogger("quiet")
        quiet.propagate = False
        quiet.info(f"opened by {PASSPHRASE}")

    def test_log_of_an_exception():
        try:
            int(TEXT)
        except ValueError:
            logging.getLogger("some.where").exception("no number")

    def test_error_that_is_swallowed():
        try:
            raise InputError("no good", hint=f"say something else than {TEXT}")
        except MyceliumError:
            pass

    def test_caught():
        with pytest.raises(KeyError):
            {}[TEXT]

    def test_caught_with_its_cause():
        with pytest.raises(InputError):
            try:
                TEXT.encode().decode("utf-16")
                raise LookupError(SEED)
            except (UnicodeError, LookupError) as error:
                raise InputError("no good") from error

    def test_ended_with():
        raise LookupError(PASSPHRASE)

    def test_process():
        subprocess.run([sys.executable, "-c", "pass", TEXT], check=True)

    def test_shell():
        subprocess.run(f": '{PASSPHRASE}'", shell=True, check=True)

    def test_system():
        os.system(f": '{SEED}'")

    def test_seed_that_was_made_here(tmp_path):
        seed = Wallet.create(tmp_path / "wallet.json", "a passphrase of this test").unlock(
            "a passphrase of this test"
        ).seed
        logging.getLogger().info(seed)

    def test_passphrase_that_was_used_here(tmp_path):
        Wallet.create(tmp_path / "wallet.json", "another passphrase of this test")
        logging.getLogger().info("another passphrase of this test")

    def test_text_that_was_remembered_here():
        Record.from_input("what this test remembers", [])
        logging.getLogger().info("it is: what this test remembers")

    def test_handed_in(request):
        request.config.pluginmanager.get_plugin(NAME).look("stderr", f"error: {TEXT}")
"""

CLEAN = """
    import logging, os, subprocess, sys
    import pytest
    from mycelium_sdk.errors import InputError
    from mycelium_sdk.records import Record
    from mycelium_sdk.wallet import Wallet
    from tests.canaries import PASSPHRASE, TEXT

    def test_private(tmp_path):
        Wallet.create(tmp_path / "wallet.json", PASSPHRASE).unlock(PASSPHRASE)
        Record.from_input(TEXT, [])
        path = tmp_path / "memory"
        path.write_text(TEXT)
        path.chmod(0o600)
        (tmp_path / "core").write_text("no core at all")
        logging.getLogger().debug("nothing to see")
        subprocess.run([sys.executable, "-c", "pass"], env={**os.environ, "KEY": PASSPHRASE}, check=True)

    def test_texts_of_other_tests_are_not_sought(tmp_path):
        Record.from_input("what this test remembers", [])

    def test_that_one():
        logging.getLogger().info("what this test remembers")

    def test_a_cause_that_nobody_sees():
        with pytest.raises(InputError):
            try:
                int(TEXT)
            except ValueError:
                raise InputError("no good") from None
"""

FILES = """
    import pathlib
    from tests.canaries import PASSPHRASE, SEED, TEXT

    def test_group(tmp_path):
        (tmp_path / "blob.json").write_text(TEXT)
        (tmp_path / "blob.json").chmod(0o640)

    def test_world(tmp_path):
        (tmp_path / "big").write_bytes(bytes(1024 * 1024 - 5) + SEED.encode() + bytes(1024 * 1024))
        (tmp_path / "big").chmod(0o604)

    def test_core(tmp_path):
        (tmp_path / "core.123").write_bytes(bytes.fromhex("7f454c46020101000000000000000000" "0400"))
        (tmp_path / "core.123").chmod(0o600)
"""


def run(folder: Path, script: str, *options: str) -> subprocess.CompletedProcess[str]:
    """A run of the tests of a script, watched."""
    (folder / "conftest.py").write_text(dedent(CONFTEST))
    (folder / "test_these.py").write_text(dedent(script))
    (folder / "pytest.ini").write_text("[pytest]\n")
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "-rA", "--tb=short", *options],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_every_way_out_fails_the_test_that_took_it(tmp_path: Path) -> None:
    done = run(tmp_path, LEAKING)
    tests = re.findall(r"def (test_\w+)", LEAKING)
    assert len(tests) > 10
    noticed = set(re.findall(r"ERROR test_these\.py::(test_\w+)", done.stdout))
    assert noticed == set(tests), done.stdout
    assert done.returncode == 1
    said = re.findall(r"a (text|passphrase|seed) came out in (.*)", done.stdout)
    assert {kind for kind, _ in said} == {"text", "passphrase", "seed"}
    assert not [where for _, where in said for secret in (TEXT, PASSPHRASE, SEED) if secret in where]


def test_what_is_no_leak_fails_nothing(tmp_path: Path) -> None:
    done = run(tmp_path, CLEAN)
    assert done.returncode == 0, done.stdout
    assert "4 passed" in done.stdout


@pytest.mark.parametrize("options", [("-p", "no:xdist"), ("-n", "2")], ids=["alone", "xdist"])
def test_files_that_others_may_read_and_core_files_fail_the_run(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    temporary = tmp_path / "temporary"
    done = run(tmp_path, FILES, *options, f"--basetemp={temporary}")
    shutil.rmtree(temporary)  # the watch over this run would notice
    assert "3 passed" in done.stdout, done.stdout
    assert "secrets came out" in done.stdout
    assert re.search(r"a text is in .*blob\.json, which others may read", done.stdout)
    assert re.search(r"a seed is in .*big, which others may read", done.stdout)
    assert re.search(r"a core file was left: .*core\.123", done.stdout)
    assert done.returncode == 1
