"""What `mycelium doctor` checks of what is anchored: the published blob, and the memory's verdict."""

from __future__ import annotations

import dataclasses
import hashlib
from typing import TYPE_CHECKING

from mycelium_cli.diagnosis.chain import chain_file, has_contract
from mycelium_cli.diagnosis.findings import Found, State
from mycelium_cli.diagnosis.store import copied_home, memory_file
from mycelium_cli.output import shown
from mycelium_sdk.errors import BlobError, BlobNotFound, VerificationError

if TYPE_CHECKING:
    from mycelium_cli.session import Session
    from mycelium_sdk.chain.anchors import Anchor
    from mycelium_sdk.context import AgentContext

__all__ = ["blob", "verdict"]


def blob(session: Session, context: AgentContext) -> str:
    """Whether the blob that is anchored now can be found, and is the one that the chain commits to."""
    anchor = _anchor(context)
    if anchor is None:
        return "none is anchored"
    from mycelium_sdk.blobs.files import FileBlobStore

    copies = FileBlobStore(session.configuration.home.root / "blobs")
    if copies.find(anchor.root) is not None:
        return f"version {anchor.version} is in {copies.path(anchor.root)}, as the chain commits to it"
    return _at_its_address(anchor, str(copies.path(anchor.root)))


def _at_its_address(anchor: Anchor, place: str) -> str:
    from mycelium_sdk.blobs.file_uri import is_file_uri, path_from_file_uri
    from mycelium_sdk.blobs.files import read_blob_file

    uri = anchor.uri_text
    again = f"publish it again, where the memory is in sync: `mycelium memory anchor`; or copy it to {place}"
    if not uri:
        raise Found(
            State.FAULT,
            f"no copy of version {anchor.version} is here, and the anchor names no address",
            again,
        )
    if not is_file_uri(uri):
        return f"version {anchor.version} should be at {shown(uri)}, which is not asked; no copy is here"
    path = path_from_file_uri(uri)
    try:
        found = read_blob_file(path)
    except BlobNotFound as error:
        raise Found(State.FAULT, f"version {anchor.version} is not at {path} any more", again) from error
    except (BlobError, VerificationError) as error:
        raise Found(State.FAULT, f"{path}: {error.message}", again) from error
    if hashlib.sha256(found).digest() != anchor.root:
        raise Found(State.FAULT, f"{path} is not what version {anchor.version} commits to", again)
    return f"version {anchor.version} is at {path}, as the chain commits to it"


def verdict(session: Session, context: AgentContext) -> str:
    """How the memory stands to its anchor: what `mycelium memory verify` would say."""
    backend = session.configuration.memory.backend
    if backend not in ("auto", "local"):
        # Verifying keeps notes in it, and there is no copy of it to keep them in.
        return f"not compared, since the memory is in the backend {backend}: `mycelium memory verify` does it"
    if not memory_file(session, context).exists():
        return "there is no memory here to compare"
    if not has_contract(context):
        return "never anchored"
    from mycelium_sdk.context import AgentContext
    from mycelium_sdk.memory.agent_memory import AgentMemory
    from mycelium_sdk.verdicts import Verdict

    with copied_home(session, context) as home:
        onchain = dataclasses.replace(session.configuration.onchain, chain_file=chain_file(session))
        configuration = dataclasses.replace(session.configuration, onchain=onchain, home=home)
        with AgentContext(configuration=configuration) as apart, AgentMemory(apart) as memory:
            found = memory.verify()
    said = "; ".join([f"{found.verdict}: {found.message}".rstrip("."), *found.warnings])
    if found:
        return said
    harmless = found.verdict in {
        Verdict.AHEAD, Verdict.NOT_ANCHORED, Verdict.DIVERGED, Verdict.ARCHIVED,
    }  # fmt: skip
    raise Found(State.WARNING if harmless else State.FAULT, said, found.next_step)


def _anchor(context: AgentContext) -> Anchor | None:
    from mycelium_sdk.chain.anchor_client import MemoryAnchorClient

    if not has_contract(context):
        return None
    return MemoryAnchorClient(context.chain, context.anchor_address()).get_anchor(context.address)
