"""The page of the configuration names what there is."""

from __future__ import annotations

import re
from pathlib import Path

from mycelium_sdk import config
from mycelium_sdk.home import HOME_VARIABLE

PAGE = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text("utf-8")


def test_every_key_is_named_and_no_other() -> None:
    rows = set(re.findall(r"^\| `\[([a-z.]+)\] ([a-z_]+)` \| `(MYCELIUM_[A-Z_]+)`", PAGE, flags=re.MULTILINE))
    known = {(setting.section, setting.key, setting.variable) for setting in config._SETTINGS}
    assert rows == known


def test_the_two_other_variables_are_named() -> None:
    assert config.DECRYPT_KEY_VARIABLE in PAGE
    assert HOME_VARIABLE in PAGE


def test_every_network_is_named() -> None:
    assert all(f"`{network}`" in PAGE for network in config.NETWORKS)
