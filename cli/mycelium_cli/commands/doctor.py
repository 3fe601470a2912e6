"""`mycelium doctor`: looks at everything a memory depends on and names the fix."""

from __future__ import annotations

import dataclasses

import click

from mycelium_cli.groups import command
from mycelium_cli.options import ALL
from mycelium_cli.output import progress, shown
from mycelium_cli.session import current_session


@command("doctor", example="mycelium doctor\nmycelium doctor --network testnet --json", shared=ALL)
def doctor() -> None:
    """Check configuration, wallet, home folder, memory, chain, account, contract and anchor.

    Each finding is ok, a warning or a fault, with the fix. Changes nothing and needs no passphrase; if
    MYCELIUM_DECRYPT_KEY is set, it is tried. The exit code is 0 unless there is a fault, else that of the
    first one.
    """
    from mycelium_cli.diagnosis import State, diagnose

    current = current_session()
    with progress("checking"):
        findings = list(diagnose(current))
    lines = []
    for finding in findings:
        lines.append(f"{finding.state:<8} {finding.name:<14} {_in_one_line(finding.message)}")
        if finding.fix is not None:
            lines.append(f"{'':23} fix: {_in_one_line(finding.fix)}")
    faults = [finding for finding in findings if finding.state is State.FAULT]
    checks = [
        {key: value for key, value in dataclasses.asdict(finding).items() if key != "exit_code"}
        for finding in findings
    ]
    current.result({"ok": not faults, "checks": checks}, *lines)
    if faults:
        click.get_current_context().exit(faults[0].exit_code)


def _in_one_line(text: str) -> str:
    """What others say, SQLite for example, may have several; each finding has one."""
    return shown("; ".join(line.strip() for line in text.splitlines() if line.strip()))
