"""A process that uses a memory as it is told, for tests with several of them.

Each line on stdin is a JSON object, and each gets one as its answer. `{"open": {...}}` names home, chain file
and wallet; `{"call": name, "with": [...], "pause": step}` calls a method of the memory. With `pause` the
process says `{"reached": step}` when it gets there for the first time, and goes on when it gets any line.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from mycelium_sdk.config import load_configuration
from mycelium_sdk.context import AgentContext
from mycelium_sdk.errors import MyceliumError
from mycelium_sdk.memory import AgentMemory
from mycelium_sdk.steps import Step, observed

if TYPE_CHECKING:
    from stellar_sdk import Keypair

_keypairs: dict[str, Keypair] = {}


def say(**answer: object) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def hear() -> dict[str, Any]:
    line = sys.stdin.readline()
    if not line:
        raise SystemExit
    heard: dict[str, Any] = json.loads(line)
    return heard


def opened(where: dict[str, str]) -> AgentMemory:
    configuration = load_configuration(
        start=None,
        env={"MYCELIUM_HOME": where["home"]},
        overrides={"onchain.chain_file": where["chain"], "wallet.path": where["wallet"]},
    )
    context = AgentContext(configuration=configuration, passphrase=where["passphrase"])
    context._keypair = _keypairs.get(context.address)  # deriving it takes longer than what is tested
    _keypairs[context.address] = context.keypair()
    return AgentMemory(context)


def use(memory: AgentMemory, order: dict[str, Any]) -> dict[str, object]:
    name, values = order["call"], order.get("with", [])
    try:
        if name == "remember":
            for text in values:
                memory.remember(text)
            return {"value": len(values)}
        if name == "sync":
            return {"value": memory.sync().version}
        if name == "verify":
            return {"value": memory.verify().verdict}
        return {"value": getattr(memory, name)(*values)}
    except MyceliumError as error:
        return {
            "error": type(error).__name__,
            "message": error.message,
            "hint": error.hint,
            "expected": getattr(error, "expected", None),
            "actual": getattr(error, "actual", None),
        }


def main() -> None:
    memory: AgentMemory | None = None
    pause: str | None = None

    def stop(step: Step) -> None:
        nonlocal pause
        if step == pause:
            pause = None
            say(reached=step)
            hear()

    with observed(stop):
        while True:
            order = hear()
            if "open" in order:
                if memory is not None:
                    memory.close()
                    memory.context.close()
                memory = opened(order["open"])
                say(value=memory.owner)
                continue
            assert memory is not None
            pause = order.get("pause")
            say(**use(memory, order))


if __name__ == "__main__":
    main()
