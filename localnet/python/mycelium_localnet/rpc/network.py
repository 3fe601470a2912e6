"""What the network is and how it does: getHealth, getNetwork, getVersionInfo."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from mycelium_localnet import _native
from mycelium_localnet.headers import RETENTION

if TYPE_CHECKING:
    from .context import Context, Result
    from .params import Params


def get_health(context: Context, _params: Params) -> Result:
    """Always healthy: the age of the last ledger means nothing where ledgers close on demand."""
    with context.chain.read() as view:
        latest, oldest = view.latest(), view.oldest()
    return {
        "status": "healthy",
        "latestLedger": latest.sequence,
        "latestLedgerCloseTime": str(latest.close_time),
        "oldestLedger": oldest.sequence,
        "oldestLedgerCloseTime": str(oldest.close_time),
        "ledgerRetentionWindow": RETENTION,
    }


def get_network(context: Context, _params: Params) -> Result:
    """Identity of the network. `chainId` (64 hex digits) is ours: it tells two local chains of one passphrase
    apart."""
    return {
        "friendbotUrl": context.friendbot_url,
        "passphrase": context.chain.passphrase,
        "protocolVersion": _native.PROTOCOL_VERSION,
        "chainId": context.chain.chain_id,
    }


@cache
def _build() -> dict[str, object]:
    module = getattr(_native, "__file__", None)
    built = datetime.fromtimestamp(Path(module).stat().st_mtime if module else 0, UTC)
    release = version("mycelium-localnet")
    return {
        "version": f"mycelium-localnet {release}",
        "commitHash": f"v{release}",
        "buildTimestamp": built.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "captiveCoreVersion": f"mycelium-localnet {release} (embedded soroban host)",
        "protocolVersion": _native.PROTOCOL_VERSION,
    }


def get_version_info(_context: Context, _params: Params) -> Result:
    """What runs here. There is no core process: its version is this package's."""
    return _build()
