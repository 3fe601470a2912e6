"""Which backend a name means, opened as the configuration says.

The only module that knows which class serves which name; each is imported when it is needed.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from mycelium_sdk.errors import ConfigError, InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mycelium_sdk.backends.base import BaseBackend
    from mycelium_sdk.context import AgentContext
    from mycelium_sdk.embedders import Embedder

__all__ = ["open_backend", "tiered_parts"]


def open_backend(
    backend: str | BaseBackend, ctx: AgentContext, arguments: Mapping[str, Any] | None
) -> tuple[BaseBackend, bool]:
    """The backend that `backend` names or is, and whether whoever asked owns it and must close it.

    "auto" takes the configuration's choice. `arguments` go to the backend's class; those of `tiered` may hold
    `primary` and `secondary`, the arguments of those two.

    Raises:
        InputError: arguments for an instance, or arguments that the backend does not take.
        ConfigError: no backend has that name, or what it needs is not configured.
        VerificationError, BackendError: the store is another owner's or cannot be used.
    """
    if not isinstance(backend, str):
        if arguments:
            raise InputError(
                "backend_kwargs go with a backend's name, not with an instance", hint="drop one of them"
            )
        if backend.owner != ctx.address:
            raise InputError(
                "the backend holds another owner's memory", hint="open it for this wallet's address"
            )
        return backend, False
    name = ctx.configuration.memory.backend if backend == "auto" else backend
    return _opened(name, ctx, arguments or {}), True


def _opened(name: str, ctx: AgentContext, arguments: Mapping[str, Any]) -> BaseBackend:
    if name not in _OPENERS:
        raise ConfigError(f"there is no backend {name!r}", hint=f"use one of {', '.join(_OPENERS)}")
    return _OPENERS[name](ctx, arguments)


def _local(ctx: AgentContext, arguments: Mapping[str, Any]) -> BaseBackend:
    from mycelium_sdk.backends.local import LocalVectorBackend

    defaults = {"path": ctx.home.memory_file(ctx.address), "integrity": ctx.home.integrity}
    given = {**defaults, **arguments}
    given.setdefault("embed", _embedder(ctx))
    return LocalVectorBackend(ctx.address, **_taken("local", LocalVectorBackend, given))


def _supermemory(ctx: AgentContext, arguments: Mapping[str, Any]) -> BaseBackend:
    from mycelium_sdk.backends.supermemory import SupermemoryBackend

    return SupermemoryBackend(ctx.address, **_taken("supermemory", SupermemoryBackend, arguments))


def _postgres(ctx: AgentContext, arguments: Mapping[str, Any]) -> BaseBackend:
    from mycelium_sdk.backends.postgres import PostgresBackend

    given = dict(arguments)
    if given.get("dsn") is None:
        given["dsn"] = ctx.configuration.memory.dsn
    if given["dsn"] is None:
        raise ConfigError(
            "the backend postgres needs the address of a database",
            hint="set dsn in [memory] of mycelium.toml, or MYCELIUM_DSN, to postgresql://user@host/database",
        )
    given.setdefault("embed", _embedder(ctx))
    return PostgresBackend(ctx.address, **_taken("postgres", PostgresBackend, given))


def tiered_parts(ctx: AgentContext) -> tuple[str, str]:
    """The names of the two backends that `tiered` is configured to be made of, the primary first.

    Raises:
        ConfigError: there is no secondary, or the two cannot go together.
    """
    chosen = ctx.configuration.memory.tiered
    primary, secondary = chosen.primary or "local", chosen.secondary
    if secondary is None:
        raise ConfigError(
            "the backend tiered needs a secondary", hint="set secondary in [memory.tiered] of mycelium.toml"
        )
    for name in (primary, secondary):
        if name not in _OPENERS or name == "tiered":
            raise ConfigError(
                f"{name!r} cannot be a part of the backend tiered",
                hint=f"use one of {', '.join(_OPENERS.keys() - {'tiered'})}",
            )
    if primary == secondary:
        raise ConfigError(
            f"both parts of the backend tiered are {primary}",
            hint="choose two different ones in [memory.tiered]",
        )
    return primary, secondary


def _tiered(ctx: AgentContext, arguments: Mapping[str, Any]) -> BaseBackend:
    from mycelium_sdk.backends.tiered import TieredBackend

    primary, secondary = tiered_parts(ctx)
    given = dict(arguments)
    first, second = given.pop("primary", {}), given.pop("secondary", {})
    own = _taken("tiered", TieredBackend, given)
    opened = _opened(primary, ctx, first)
    try:
        follower = _opened(secondary, ctx, second)
    except BaseException:
        opened.close()
        raise
    own.setdefault("queue", ctx.home.tier_queue(ctx.address, f"{opened.place} {follower.place}"))
    return TieredBackend(opened, follower, **own)


_OPENERS: dict[str, Callable[[AgentContext, Mapping[str, Any]], BaseBackend]] = {
    "local": _local,
    "supermemory": _supermemory,
    "postgres": _postgres,
    "tiered": _tiered,
    "auto": _local,
}


def _taken(name: str, kind: type[BaseBackend], given: Mapping[str, Any]) -> dict[str, Any]:
    taken = inspect.signature(kind).parameters.keys() - {"owner"}
    if unknown := given.keys() - taken:
        raise InputError(
            f"the backend {name} does not take {', '.join(sorted(unknown))}",
            hint=f"it takes {', '.join(sorted(taken))}",
        )
    return dict(given)


def _embedder(ctx: AgentContext) -> Embedder | None:
    """What `[memory] embedder` names. It looks for its files and libraries at the first recall."""
    if ctx.configuration.memory.embedder == "none":
        return None
    from mycelium_sdk.embedders import MiniLM

    return MiniLM()
