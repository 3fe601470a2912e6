"""What `mycelium doctor` checks of where blobs are published: that anchoring could put one there."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from mycelium_cli.diagnosis.store import memory_file
from mycelium_cli.obstacles import access_error, is_there, unusable_folder
from mycelium_cli.output import shown
from mycelium_sdk.errors import MyceliumError, PublishFailed

if TYPE_CHECKING:
    from mycelium_cli.session import Session
    from mycelium_sdk.context import AgentContext

__all__ = ["publish"]


def publish(session: Session, context: AgentContext) -> str:
    """Whether `[memory] publish` names a place that may be, and can be, published to."""
    from mycelium_sdk.backends.local import LocalVectorBackend
    from mycelium_sdk.memory.own_files import refuse_own_files
    from mycelium_sdk.memory.publishing import configured_publish, named_path, require_target

    target = configured_publish(session.configuration)
    if target is None:
        folder = session.configuration.home.root / "blobs"
        _require(unusable_folder(folder) or (access_error(folder) if is_there(folder) else None))
        return f"to {folder}"
    try:
        with contextlib.closing(LocalVectorBackend(context.address, ":memory:")) as stand_in:
            # The memory's own file is not opened for this: that could change it.
            stand_in.path = memory_file(session, context)
            refuse_own_files(target, context, stand_in)
        require_target(target)
        path = named_path(target)
        if path is not None:
            _require(access_error(path if path.is_dir() else path.absolute().parent))
    except MyceliumError as error:
        error.hint = f"{error.hint or 'name another place'}; it is `[memory] publish`, or MYCELIUM_PUBLISH"
        raise
    return f"to {shown(target)}"


def _require(fault: MyceliumError | None) -> None:
    if fault is not None:
        raise PublishFailed(fault.message, hint=fault.hint)
