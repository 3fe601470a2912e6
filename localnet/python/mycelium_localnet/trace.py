"""A call told for people: who called whom with what, where it failed, why, and what helps."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mycelium_localnet.calls import Call, CallTree, Note, Step
from mycelium_localnet.envelopes import decode_transaction
from mycelium_localnet.explanations import HOST_ERRORS, RESULTS
from mycelium_localnet.readable import result_codes
from mycelium_localnet.report import Resource, report_of, resource_table
from mycelium_localnet.specs import Specs, created_code

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mycelium_localnet._native import NetworkSettings, Simulation
    from mycelium_localnet.rows import TransactionRow
    from mycelium_localnet.view import ReadView

_BUDGET: Final = "Error(Budget, ExceededLimit)"
_ADDRESS: Final = re.compile(r"\b[CG][A-Z2-7]{55}\b")
_HOST_ERROR: Final = re.compile(r"Error\(\w+, #?\w+\)")


@dataclass(frozen=True, slots=True)
class Trace:
    """What happened in a transaction or a simulation; `str()` tells it with nested calls indented.

    `subject`: which one. `outcome`: its result codes, or what the host said. `cause`: the failure at its
    origin, and `hint` what it means and what helps; both None after a success. `steps`: what happened, in
    order. `resources`: what was declared, used and allowed, when something of it ran out, else empty.
    """

    subject: str
    successful: bool
    outcome: str
    cause: str | None
    hint: str | None
    steps: tuple[Step, ...]
    resources: tuple[Resource, ...]

    def __str__(self) -> str:
        head = [f"{self.subject} {'succeeded' if self.successful else 'failed'}: {self.outcome}"]
        if self.cause is not None:
            head.append(f"cause: {self.cause}")
        if self.hint is not None:
            head.append(f"hint: {self.hint}")
        blocks = ["\n".join(head), "\n".join(line for step in self.steps for line in _lines(step, ""))]
        if self.resources:
            blocks.append(resource_table(self.resources))
        return _shorten("\n\n".join(block for block in blocks if block))


def trace_transaction(
    row: TransactionRow, view: ReadView, network_id: bytes, settings: NetworkSettings
) -> Trace:
    """The trace of an applied transaction, with the names of the contracts as they are now."""
    tree = _tree(row.envelope, row.diagnostic_events, view, network_id, None)
    code, operation_codes = result_codes(row.result)
    subject = f"transaction {row.hash.hex()} in ledger {row.ledger}"
    outcome = ", ".join((code, *operation_codes))
    if row.successful:
        return _success(subject, outcome, tree)
    resources = report_of(row, network_id, settings).resources
    ran_out = tree.error == _BUDGET or any(resource.exceeded for resource in resources)
    explained = next((name for name in (*operation_codes, code) if name in RESULTS), None)
    hint = HOST_ERRORS.get(tree.error or "") if explained is None else RESULTS[explained]
    return _failure(subject, outcome, hint, tree, resources if ran_out else ())


def trace_simulation(
    simulation: Simulation, envelope: bytes, view: ReadView, network_id: bytes, settings: NetworkSettings
) -> Trace:
    """The trace of a simulation of `envelope` (TransactionEnvelope) on the state of `view`."""
    subject = f"simulation at ledger {view.latest().sequence}"
    if simulation.error is None:
        tree = _tree(envelope, simulation.events, view, network_id, None)
        return _success(subject, f"{simulation.instructions:,} instructions", tree)
    # The host's words: the error, then its own log of the events.
    outcome = simulation.error.partition("\n")[0].removeprefix("HostError: ")
    said = _HOST_ERROR.search(outcome)
    error = said[0] if said else None
    resources: tuple[Resource, ...] = ()
    if error == _BUDGET:
        resources = (
            Resource("instructions", None, simulation.instructions, settings.tx_max_instructions),
            Resource("bytes of memory", None, simulation.memory, settings.tx_memory_limit),
        )
    tree = _tree(envelope, simulation.events, view, network_id, error)
    return _failure(subject, outcome, HOST_ERRORS.get(error or ""), tree, resources)


def _success(subject: str, outcome: str, tree: CallTree) -> Trace:
    return Trace(
        subject=subject,
        successful=True,
        outcome=outcome,
        cause=None,
        hint=None,
        steps=tree.steps,
        resources=(),
    )


def _failure(
    subject: str, outcome: str, hint: str | None, tree: CallTree, resources: tuple[Resource, ...]
) -> Trace:
    return Trace(
        subject=subject,
        successful=False,
        outcome=outcome,
        cause=_cause(tree) or outcome,
        hint=hint,
        steps=tree.steps,
        resources=resources,
    )


def _tree(
    envelope: bytes, events: Sequence[bytes], view: ReadView, network_id: bytes, error: str | None
) -> CallTree:
    operations = decode_transaction(envelope, network_id).operations
    invoke = operations[0].body.invoke_host_function_op if operations else None
    code = None if invoke is None else created_code(invoke.host_function)
    return CallTree(events, Specs(view), created_code=code, error=error)


def _cause(tree: CallTree) -> str | None:
    """Where the failure began: the ledger's own reason, or the innermost call that failed like the whole."""
    outermost = _error_note(tree.steps)
    if outermost is not None:
        return outermost.text
    where: Call | None = None
    steps = tree.steps
    while inner := [step for step in steps if isinstance(step, Call) and step.error == tree.error][-1:]:
        where, steps = inner[0], inner[0].steps
    if where is None or where.error is None:
        return None
    reason = _error_note(where.steps)
    said = f"failed with {where.failure}" if reason is None else reason.text
    return f"{where.contract}.{where.function}: {said}"


def _error_note(steps: Sequence[Step]) -> Note | None:
    """The last error among some steps."""
    return next((step for step in reversed(steps) if isinstance(step, Note) and step.error), None)


def _lines(step: Step, indent: str) -> Iterator[str]:
    if isinstance(step, Note):
        yield f"{indent}{step.text}" if step.error else f"{indent}{step.kind} {step.text}"
        return
    arguments = ", ".join(f"{name}: {value}" if name else value for name, value in step.arguments)
    yield f"{indent}{step.contract}.{step.function}({arguments})"
    inner = f"{indent}  "
    for one in step.steps:
        yield from _lines(one, inner)
    yield (
        f"{inner}failed with {step.failure}" if step.returned is None else f"{inner}returned {step.returned}"
    )


def _shorten(text: str) -> str:
    """Addresses by their ends, with a list of them behind; in full where two would look the same."""
    addresses = sorted(set(_ADDRESS.findall(text)))
    if not addresses:
        return text
    short = {address: f"{address[:4]}..{address[-4:]}" for address in addresses}
    if len(set(short.values())) < len(short):
        return text
    listed = "\n".join(f"{short[address]}  {address}" for address in addresses)
    return f"{_ADDRESS.sub(lambda match: short[match[0]], text)}\n\n{listed}"
