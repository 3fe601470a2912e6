"""The networks that a chain can resemble, as config setting entries.

All have protocol 28's cost parameters, fees and limits; they differ in how long entries live. Testnet and
mainnet have the live networks' TTLs. "short-ttl" makes archival a matter of a few ledgers; its small maximum
is needed as well, since contracts ask for months and get at most the maximum.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Final, Literal, TypeAlias

from stellar_sdk import xdr

ProfileName: TypeAlias = Literal["testnet", "mainnet", "short-ttl"]

_SETTINGS_FILE = "network-settings.p28.json"
_SIZE_WINDOW = 30  # samples of the state's size that the rent rate is averaged from


@dataclass(frozen=True, slots=True)
class Profile:
    """TTLs in ledgers; None keeps the value of the settings file."""

    min_persistent_ttl: int
    max_ttl: int
    min_temporary_ttl: int | None = None


PROFILES: Final[dict[ProfileName, Profile]] = {
    "testnet": Profile(min_persistent_ttl=120_960, max_ttl=3_110_400),
    "mainnet": Profile(min_persistent_ttl=2_073_600, max_ttl=3_110_400),
    "short-ttl": Profile(min_persistent_ttl=10, max_ttl=40, min_temporary_ttl=10),
}


def config_entries(name: ProfileName) -> list[xdr.ConfigSettingEntry]:
    """The network's configuration, one entry for each setting that the host and the ledger use.

    The state counts as empty for the rent rate (a size window of zeros): rent costs the network's minimum.
    """
    profile = PROFILES[name]
    text = files("mycelium_localnet").joinpath(_SETTINGS_FILE).read_text(encoding="utf-8")
    settings = json.loads(text)
    for setting in settings["updated_entry"]:
        archival = setting.get("state_archival")
        if archival is not None:
            archival["min_persistent_ttl"] = profile.min_persistent_ttl
            archival["max_entry_ttl"] = profile.max_ttl
            if profile.min_temporary_ttl is not None:
                archival["min_temporary_ttl"] = profile.min_temporary_ttl
    entries = xdr.ConfigUpgradeSet.from_json_dict(settings).updated_entry
    entries.append(
        xdr.ConfigSettingEntry(
            xdr.ConfigSettingID.CONFIG_SETTING_LIVE_SOROBAN_STATE_SIZE_WINDOW,
            live_soroban_state_size_window=[xdr.Uint64(0)] * _SIZE_WINDOW,
        )
    )
    return entries
