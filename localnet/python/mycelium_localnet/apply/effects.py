"""What an operation did."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Effects:
    """One operation's result and traces. Only `result` and `diagnostics` are set when it failed.

    `changes`: LedgerEntryChange each; `events`: ContractEvent each; `return_value`: SCVal;
    `diagnostics`: DiagnosticEvent each; `internal_error`: the host itself failed, which ends the transaction.
    """

    result: bytes
    successful: bool = False
    changes: list[bytes] = field(default_factory=list)
    events: list[bytes] = field(default_factory=list)
    return_value: bytes | None = None
    diagnostics: list[bytes] = field(default_factory=list)
    internal_error: bool = False
