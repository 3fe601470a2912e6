"""What happened inside a call, as a tree: contracts calling contracts, events, logs and errors.

It is put together from the host's diagnostic events, which tell that a call began, and that it returned if it
did. A call that failed ends where its caller goes on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from stellar_sdk import xdr

from mycelium_localnet.envelopes import present
from mycelium_localnet.readable import contract_address, error_text, symbol, value_text, vector

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mycelium_localnet.specs import Specs

Step: TypeAlias = "Call | Note"

# The host's words for what the tree shows by its shape.
_CALLEE_FAILED: Final = ("contract call failed", "contract try_call failed")
_ESCALATED: Final = "escalating error to VM trap from failed host function call: "
_TRAPPED: Final = "VM call trapped with HostError"

_CONTRACT_ERROR: Final = re.compile(r"Error\(Contract, #(\d+)\)")


@dataclass(frozen=True, slots=True)
class Note:
    """An event, a log entry or an error, in words. `error`: the host's spelling of it."""

    kind: Literal["event", "log", "error"]
    text: str
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a contract's function. `contract`: C...; `arguments`: `(name, value)` each, the name ""
    where the contract's specification has none.

    `returned`: the value, None when the call failed. `failure`: the error that it failed with, by the name
    that the failing contract's specification gives it; `error`: the same in the host's spelling.
    """

    contract: str
    function: str
    arguments: tuple[tuple[str, str], ...]
    steps: tuple[Step, ...]
    returned: str | None
    failure: str | None
    error: str | None


@dataclass(slots=True)
class _Frame:
    """A call that has not ended yet. The outermost frame is no contract's."""

    contract: bytes | None = None
    function: str = ""
    arguments: tuple[tuple[str, str], ...] = ()
    steps: list[Step] = field(default_factory=list)
    error: str | None = None


class CallTree:
    """The tree of one invocation. `steps`: what stands outermost; `error`: what the host function failed
    with, in the host's spelling, None when it did not."""

    def __init__(
        self,
        events: Iterable[bytes],
        specs: Specs,
        *,
        created_code: bytes | None = None,
        error: str | None = None,
    ) -> None:
        """`events`: DiagnosticEvent each, in order. `created_code`: see `specs.created_code`. `error`: what
        the host function failed with, where the events do not tell (a simulation's)."""
        self._specs = specs
        self._created_code = created_code
        self._root = _Frame()
        self._stack = [self._root]
        self.error = error
        for data in events:
            self._take(xdr.DiagnosticEvent.from_xdr_bytes(data))
        while len(self._stack) > 1:
            self._fail()

    @property
    def steps(self) -> tuple[Step, ...]:
        return tuple(self._root.steps)

    def _name(self, error: str, contract: bytes | None) -> str:
        """An error of a contract by the name in its specification."""
        match = _CONTRACT_ERROR.fullmatch(error)
        if match is None or contract is None:
            return error
        named = self._specs.error(contract, int(match[1]))
        return error if named is None else f"{named} (contract error {match[1]})"

    def _take(self, diagnostic: xdr.DiagnosticEvent) -> None:
        event = diagnostic.event
        body = present(event.body.v0)
        emitter = None if event.contract_id is None else event.contract_id.contract_id.hash
        topics, data = body.topics, body.data
        if event.type != xdr.ContractEventType.DIAGNOSTIC:
            self._unwind(emitter)
            undone = "" if diagnostic.in_successful_contract_call else " (undone)"
            text = f"{', '.join(map(value_text, topics))}: {value_text(data)}{undone}"
            self._stack[-1].steps.append(Note("event", text))
            return
        kind = symbol(topics[0]) if topics else ""
        if kind == "fn_call":
            self._unwind(emitter)
            self._begin(topics, data)
        elif kind == "fn_return":
            self._unwind(emitter)
            self._end(returned=value_text(data))
        elif kind == "error" and topics[1].error is not None:
            self._unwind(emitter)
            self._note_error(error_text(topics[1].error), data)
        elif kind == "host_fn_failed" and topics[1].error is not None:
            self.error = error_text(topics[1].error)
            self._unwind(None)
        elif kind == "log":
            self._unwind(emitter)
            self._log(data)

    def _begin(self, topics: list[xdr.SCVal], data: xdr.SCVal) -> None:
        contract, function = present(topics[1].bytes).sc_bytes, symbol(topics[2])
        if self._created_code is not None and len(self._stack) == 1:
            self._specs.adopt(contract, self._created_code)
        names = self._specs.arguments(contract, function)
        # One argument is told by itself, several as a vector, none as void.
        if names is not None and len(names) == 1:
            values = [data]
        elif data.vec is not None:
            values = vector(data)
        else:
            values = [] if data.type == xdr.SCValType.SCV_VOID else [data]
        if names is None or len(names) != len(values):
            names = [""] * len(values)
        arguments = tuple(zip(names, map(value_text, values), strict=True))
        self._stack.append(_Frame(contract, function, arguments))

    def _note_error(self, error: str, data: xdr.SCVal) -> None:
        frame = self._stack[-1]
        message, values = _message(data)
        if message in _CALLEE_FAILED:
            return  # The callee stands above, with its failure.
        last = frame.steps[-1] if frame.steps else None
        if message.startswith(_ESCALATED):
            if isinstance(last, Note) and last.error == error:
                where = message.removeprefix(_ESCALATED)
                frame.steps[-1] = Note("error", f"{last.text}, in {where}", last.error)
            return
        shown = f" ({', '.join(map(value_text, values))})" if values else ""
        text = f"{self._name(error, frame.contract)}: {message}{shown}"
        frame.steps.append(Note("error", text, error))
        frame.error = error

    def _log(self, data: xdr.SCVal) -> None:
        frame = self._stack[-1]
        message, values = _message(data)
        if message == _TRAPPED and values and values[-1].error is not None:
            frame.error = error_text(values[-1].error)
            return
        shown = f" ({', '.join(map(value_text, values))})" if values else ""
        frame.steps.append(Note("log", f"{message}{shown}"))

    def _unwind(self, contract: bytes | None) -> None:
        """Go back to the call of `contract`: those inside it have failed."""
        if all(frame.contract != contract for frame in self._stack):
            return
        while self._stack[-1].contract != contract:
            self._fail()

    def _fail(self) -> None:
        frame = self._stack[-1]
        error = frame.error or self.error
        last = frame.steps[-1] if frame.steps else None
        if error is None:
            self._end(failure="no error that was told")
        elif isinstance(last, Call) and last.error == error:
            # An error that came through from a callee is one of the callee's contract.
            self._end(failure=last.failure, error=last.error)
        else:
            self._end(failure=self._name(error, frame.contract), error=error)

    def _end(
        self, *, returned: str | None = None, failure: str | None = None, error: str | None = None
    ) -> None:
        if len(self._stack) == 1:
            return
        frame = self._stack.pop()
        self._stack[-1].steps.append(
            Call(
                contract_address(present(frame.contract)),
                frame.function,
                frame.arguments,
                tuple(frame.steps),
                returned,
                failure,
                error,
            )
        )


def _message(data: xdr.SCVal) -> tuple[str, list[xdr.SCVal]]:
    """The words of an error or a log entry, and the values that go with them."""
    items = vector(data) if data.vec is not None else [data]
    if items and items[0].str is not None:
        return items[0].str.sc_string.decode("utf-8", "replace"), items[1:]
    return "", items
