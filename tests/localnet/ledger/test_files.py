"""The chain file: private, recognised, and never used behind its owner's back."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mycelium_localnet import Chain, errors, storage
from mycelium_localnet.schema import APPLICATION_ID, SCHEMA_VERSION


def test_every_file_of_a_chain_is_private(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with Chain.open(tmp_path / "chain.db") as chain:
            chain.close_ledger()
            found = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert found == {"chain.db": 0o600, "chain.db-wal": 0o600, "chain.db-shm": 0o600}


def test_what_the_file_says_of_itself(tmp_path: Path) -> None:
    Chain.open(tmp_path / "chain.db").close()
    connection = sqlite3.connect(tmp_path / "chain.db")
    assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
    assert connection.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()


def test_a_text_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("remember the milk" * 100)
    path.chmod(0o600)
    with pytest.raises(errors.ForeignFileError, match=r"notes\.txt") as caught:
        Chain.open(path)
    assert caught.value.hint
    assert path.read_text() == "remember the milk" * 100
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("harm", ["cut off after its header", "cut off within a page", "overwritten within"])
def test_a_damaged_chain_is_called_that_and_no_strangers_file(tmp_path: Path, harm: str) -> None:
    path = tmp_path / "chain.db"
    with Chain.open(path) as chain:
        chain.close_ledger()
    whole = path.read_bytes()
    harmed = {
        "cut off after its header": whole[:200],
        "cut off within a page": whole[:5000],
        "overwritten within": whole[:100] + b"\xff" * (len(whole) - 100),
    }[harm]
    path.write_bytes(harmed)
    with pytest.raises(errors.UnusableFileError, match="is damaged: ") as caught:
        Chain.open(path)
    assert caught.value.hint == (
        "restore it from a copy, or load a dump of it; without either its anchors are lost"
    )
    assert path.read_bytes() == harmed


def test_a_chain_whose_beginning_was_overwritten_is_not_to_be_thrown_away(tmp_path: Path) -> None:
    path = tmp_path / "chain.db"
    Chain.open(path).close()
    path.write_bytes(b"x" * 200 + path.read_bytes()[200:])
    with pytest.raises(errors.ForeignFileError) as caught:
        Chain.open(path)
    assert "restore it from a copy" in (caught.value.hint or "")
    assert "move" not in (caught.value.hint or "")


def test_another_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE precious (thing)")
    connection.commit()
    connection.close()
    path.chmod(0o600)
    before = path.read_bytes()
    with pytest.raises(errors.ForeignFileError):
        Chain.open(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_newer_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "chain.db"
    Chain.open(path).close()
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.close()
    with pytest.raises(errors.NewerFileError, match="later version") as caught:
        Chain.open(path)
    assert "upgrade" in (caught.value.hint or "")


def test_a_file_that_others_may_read_is_refused_with_the_fix(tmp_path: Path) -> None:
    path = tmp_path / "chain.db"
    Chain.open(path).close()
    path.chmod(0o640)
    with pytest.raises(errors.UnsafeFileError, match="640") as caught:
        Chain.open(path)
    assert caught.value.hint == f"chmod 600 {path}"
    path.chmod(0o600)
    Chain.open(path).close()


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(errors.ChainFileError, match="does not exist") as caught:
        Chain.open(tmp_path / "nowhere" / "chain.db")
    assert f"mkdir -p {tmp_path / 'nowhere'}" in (caught.value.hint or "")


def test_a_folder_is_not_a_chain(tmp_path: Path) -> None:
    with pytest.raises(errors.ForeignFileError):
        Chain.open(tmp_path)


def test_an_empty_file_becomes_a_chain(tmp_path: Path) -> None:
    """What is left when the first process that ever opened it died at once."""
    path = tmp_path / "chain.db"
    path.touch(mode=0o600)
    with Chain.open(path) as chain:
        assert chain.close_ledger() == 2


@pytest.mark.parametrize("replace", [False, True])
def test_a_file_that_went_away_is_noticed(tmp_path: Path, *, replace: bool) -> None:
    path = tmp_path / "chain.db"
    with Chain.open(path) as chain:
        for name in ("chain.db", "chain.db-wal", "chain.db-shm"):
            (tmp_path / name).rename(tmp_path / f"old-{name}")
        if replace:
            Chain.open(path).close()
        with pytest.raises(errors.ChainReplacedError, match="deleted or replaced"):
            chain.close_ledger()
        with pytest.raises(errors.ChainReplacedError), chain.read():
            pass


def test_a_closed_chain_says_so(tmp_path: Path) -> None:
    chain = Chain.open(tmp_path / "chain.db")
    chain.close()
    chain.close()
    with pytest.raises(errors.ChainClosedError):
        chain.close_ledger()
    with pytest.raises(errors.ChainClosedError), chain.read():
        pass


def test_a_chain_in_memory_leaves_nothing() -> None:
    chain = Chain.open(":memory:")
    folder = Path(chain.path).parent
    assert folder.is_dir()
    chain.close()
    assert not folder.exists()
    with Chain.open(":memory:") as one, Chain.open(":memory:") as other:
        assert one.chain_id != other.chain_id


def test_a_forked_child_is_told_to_open_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Chain.open(tmp_path / "chain.db") as chain:
        with monkeypatch.context() as patch:
            patch.setattr(os, "getpid", lambda: -1)
            with pytest.raises(errors.ChainClosedError, match="fork"):
                chain.close_ledger()
        assert chain.close_ledger() == 2


def test_a_failed_write_leaves_the_chain_as_it_was(tmp_path: Path) -> None:
    def fail_half_way(chain: Chain) -> None:
        with chain._storage.write() as connection:
            connection.execute("DELETE FROM entries")
            raise RuntimeError

    with Chain.open(tmp_path / "chain.db") as chain:
        with pytest.raises(RuntimeError):
            fail_half_way(chain)
        with chain.read() as view:
            assert view.latest().sequence == 1
        assert chain.close_ledger() == 2


def test_a_reader_sees_one_state_while_ledgers_close() -> None:
    with Chain.open(":memory:") as chain, chain.read() as view:
        before = view.latest()
        chain.close_ledger()
        assert view.ledger(2) is None
        assert view.latest() == before
        with chain.read() as later:
            assert later.latest().sequence == 2


def test_threads_share_a_chain() -> None:
    with Chain.open(":memory:") as chain:
        seen: list[int] = []

        def close_some() -> None:
            for _ in range(20):
                number = chain.close_ledger()
                with chain.read() as view:
                    assert view.latest().sequence >= number
                seen.append(number)

        threads = [threading.Thread(target=close_some) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(seen) == list(range(2, 82))


def test_a_file_that_another_process_makes_just_now_is_no_strangers(tmp_path: Path) -> None:
    """What tells a chain file is read at once: tables may come between two statements."""
    path = tmp_path / "chain.db"
    path.touch(mode=0o600)

    class Interrupted(sqlite3.Connection):
        """Another opener makes the file between two statements."""

        began = False

        def execute(self, *arguments: Any) -> sqlite3.Cursor:
            if self.began:
                Chain.open(path).close()
            self.began = True
            return super().execute(*arguments)

    with closing(sqlite3.connect(path, isolation_level=None, factory=Interrupted)) as connection:
        storage._check_kind(connection, str(path))
