"""The chain over HTTP: Stellar RPC and the friendbot for any client, in a process of its own.

`ServerOptions` says what to serve and where; `serve` does it until the process is asked to end.
"""

from __future__ import annotations

from mycelium_localnet.server.options import Endpoint, ServerOptions, parse_seed
from mycelium_localnet.server.run import serve

__all__ = ["Endpoint", "ServerOptions", "parse_seed", "serve"]
