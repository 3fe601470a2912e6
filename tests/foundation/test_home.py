"""The home folder."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from mycelium_sdk.errors import BackendError, ConfigError, InputError
from mycelium_sdk.home import Home


def test_paths_are_ready_to_be_used(tmp_path: Path, owner: str) -> None:
    home = Home(tmp_path / "deep" / "home")
    paths = {
        "memory": home.memory_file(owner),
        "state": home.state_file,
        "blobs": home.blobs,
        "chain": home.chain_file,
    }
    assert {name: str(path.relative_to(home.root)) for name, path in paths.items()} == {
        "memory": f"memory/{owner}.db",
        "state": "state/state.db",
        "blobs": "blobs",
        "chain": "localnet/chain.db",
    }
    folders = [home.root, *(path for path in home.root.rglob("*"))]
    assert {path.name for path in folders} == {"home", "memory", "state", "blobs", "localnet"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in folders} == {0o700}


def test_nothing_is_made_before_it_is_asked_for(tmp_path: Path) -> None:
    Home.default({"MYCELIUM_HOME": str(tmp_path / "home")})
    Home(tmp_path / "home")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("owner", ["../../etc/passwd", "", "GABC"])
def test_a_memory_file_is_named_by_an_address_only(tmp_path: Path, owner: str) -> None:
    with pytest.raises(InputError):
        Home(tmp_path / "home").memory_file(owner)
    assert list(tmp_path.iterdir()) == []


def test_an_exposed_home_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "home"
    root.mkdir()
    root.chmod(0o755)
    with pytest.raises(BackendError) as caught:
        _ = Home(root).state_file
    assert caught.value.hint == f"run `chmod 700 {root}`"


def test_the_default_is_in_the_users_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("MYCELIUM_HOME", raising=False)
    assert Home.default() == Home(tmp_path / ".mycelium")
    assert Home.default({"MYCELIUM_HOME": " "}) == Home(tmp_path / ".mycelium")
    assert Home.default({"MYCELIUM_HOME": "~/elsewhere"}) == Home(tmp_path / "elsewhere")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MYCELIUM_HOME", "here")
    assert Home.default() == Home(tmp_path / "here")


def test_no_home_folder_at_all_is_an_error_with_the_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless(path: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "expanduser", homeless)
    with pytest.raises(ConfigError) as caught:
        Home.default({})
    assert "MYCELIUM_HOME" in (caught.value.hint or "")
