"""What a store may add to the least that a backend is; by default it adds nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from mycelium_sdk.backends.integrity import IntegrityReport
    from mycelium_sdk.backends.tiered.queue import Lag
    from mycelium_sdk.backends.values import Progress
    from mycelium_sdk.facts import LastAnchors


class Extras:
    """Telling an edited store, and an old copy of a store, from the store; keeping its own last anchors."""

    def check(self, progress: Progress | None = None) -> IntegrityReport:  # noqa: ARG002 - the interface
        """Whether the store's files are as the store left them, from every row of them."""
        from mycelium_sdk.backends.integrity import Integrity, IntegrityReport

        return IntegrityReport(Integrity.UNPROTECTED)

    def adopt(self, root: bytes, progress: Progress | None = None) -> None:
        """Vouch for what the files hold from now on, iff its root is `root`: the verified anchor's.

        Ids, sessions and times are taken as they are. Raises `Tampered`, with nothing changed.
        """

    def lag(self) -> Lag | None:
        """What a second store that follows this one lacks; None where there is no second one."""
        return None

    def files(self) -> tuple[Path, ...]:
        """The store's own files on this machine, by the names of the main ones."""
        return ()

    @property
    def keeps_links(self) -> bool:
        """Whether `set_link` has an effect, so that an old copy of the store can be told from the store."""
        return False

    def link(self, chain: str) -> bytes | None:  # noqa: ARG002 - the interface
        """What `set_link` put there for this chain; None for nothing, or if it was changed since."""
        return None

    def set_link(self, chain: str, link: bytes | None) -> None:
        """Keep 16 bytes for this chain, or nothing, durably; a copy of the store has what it had when made.

        No write: the change counter stays. What is kept outlives `import_blob` and `clear`. A store that was
        changed behind its back, or whose integrity key is lost, keeps nothing.
        """

    def last_anchors(self) -> LastAnchors | None:
        """Where this memory's last anchors are kept, if that is the store itself.

        None: the home folder's state keeps them. A store that several machines share has them itself.
        """
        return None
