"""Locks on files end with their holder's use of them, whatever was forked meanwhile."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from mycelium_sdk.errors import StoreLocked
from mycelium_sdk.locking import exclusive, shared

if TYPE_CHECKING:
    from pathlib import Path


def test_one_holds_it_alone_or_several_share_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with exclusive(path):
        for kind in (exclusive, shared):
            with pytest.raises(StoreLocked, match="busy"), kind(path, timeout=0.0, busy="busy"):
                pass
    with shared(path), shared(path, timeout=0.0), pytest.raises(StoreLocked), exclusive(path, timeout=0.0):
        pass
    with exclusive(path, timeout=0.0):
        pass
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_child_that_was_forked_meanwhile_does_not_keep_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    told, telling = os.pipe()
    with exclusive(path):
        child = os.fork()
        if child == 0:
            os.close(telling)
            os.read(told, 1)
            os._exit(0)
    try:
        with exclusive(path, timeout=0.0):
            pass
    finally:
        os.close(telling)
        os.close(told)
        os.waitpid(child, 0)


def test_a_child_that_leaves_the_block_does_not_let_go_for_its_parent(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    child = -1
    try:
        with exclusive(path):
            child = os.fork()
            if child:
                os.waitpid(child, 0)
                with pytest.raises(StoreLocked), exclusive(path, timeout=0.0):
                    pass
    finally:
        if child == 0:
            os._exit(0)
