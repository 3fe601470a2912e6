"""What `mycelium doctor` checks of what is anchored: the published blob, and the memory's verdict."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import shlex
from typing import TYPE_CHECKING

from mycelium_cli.diagnosis.chain import chain_file, put_back
from mycelium_cli.diagnosis.findings import Finding, Found, State
from mycelium_cli.diagnosis.store import copied_home, memory_file, signature
from mycelium_cli.obstacles import access_error, is_there
from mycelium_cli.output import shown
from mycelium_sdk.errors import BlobError, BlobNotFound, VerificationError
from mycelium_sdk.verdicts import Verdict

if TYPE_CHECKING:
    from pathlib import Path

    from mycelium_cli.session import Session
    from mycelium_sdk.chain.anchors import Anchor
    from mycelium_sdk.context import AgentContext
    from mycelium_sdk.memory.verification import Verification

__all__ = ["agrees", "blob", "verdict"]

_ATTEMPTS = 3
_HARMLESS = frozenset({Verdict.AHEAD, Verdict.NOT_ANCHORED, Verdict.DIVERGED, Verdict.ARCHIVED})
_CONTRADICTIONS = frozenset({Verdict.CHAIN_RESET, Verdict.ROLLBACK, Verdict.FORK})


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
        raise _unusable(path, error.message, again) from error
    if hashlib.sha256(found).digest() != anchor.root:
        raise Found(State.FAULT, f"{path} is not what version {anchor.version} commits to", again)
    return f"version {anchor.version} is at {path}, as the chain commits to it"


def _unusable(path: Path, problem: str, again: str) -> Found:
    """What is at the address of a blob, and is none that can be read."""
    quoted = shlex.quote(str(path))
    if path.is_symlink():
        said = f"{path} is a symbolic link, which is not followed"
        return Found(State.FAULT, said, f"remove it: `rm {quoted}`; then {again}")
    if path.is_dir():
        return Found(State.FAULT, f"{path} is a folder", f"move it away; then {again}")
    if not path.is_file():
        return Found(State.FAULT, f"{path} is not a regular file", f"remove it: `rm {quoted}`; then {again}")
    return Found(State.FAULT, f"{path}: {problem}", _opened(path) or again)


def _opened(path: Path) -> str | None:
    fault = access_error(path, os.R_OK)
    return None if fault is None else fault.hint


def verdict(session: Session, context: AgentContext) -> str:
    """How the memory stands to its anchor: what `mycelium memory verify` would say."""
    backend = session.configuration.memory.backend
    if backend not in ("auto", "local"):
        # Verifying keeps notes in it, and there is no copy of it to keep them in.
        return f"not compared, since the memory is in the backend {backend}: `mycelium memory verify` does it"
    if not is_there(memory_file(session, context)):
        return "there is no memory here to compare"
    for _ in range(_ATTEMPTS):
        before = signature(session, context)
        found, copy = _verified_apart(session, context)
        harmless = bool(found) or found.verdict in _HARMLESS
        if harmless or signature(session, context) == before:
            break
        # Somebody anchored between the copies of the memory and of what is known, and the look at the chain.
    said = "; ".join([f"{found.verdict}: {found.message}".rstrip("."), *found.warnings])
    said = said.replace(str(copy), str(session.configuration.home.root))
    if found:
        return said
    raise Found(State.WARNING if harmless else State.FAULT, said, _fix(session, context, found))


def agrees(finding: Finding) -> bool | None:
    """Whether that finding of `verdict` says that the chain holds to what was seen before; None where it does
    not tell, for example since the chain was not asked."""
    name = finding.message.partition(":")[0]
    if name in {Verdict.IN_SYNC, *_HARMLESS}:
        return True
    return False if name in _CONTRADICTIONS - {Verdict.ROLLBACK} else None  # that may be the memory's own


def _fix(session: Session, context: AgentContext, found: Verification) -> str:
    """What to do about a verdict, with the place of the chain where that is a file of this machine."""
    of_the_chain = found.verdict in _CONTRADICTIONS and found.advice is None
    onchain = session.configuration.onchain
    if not of_the_chain or onchain.network != "local":
        return found.next_step
    if found.verdict is Verdict.CHAIN_RESET:
        return put_back(session)
    held = _anchor(context) is not None  # loading takes one
    anew = (
        "`mycelium memory rehydrate --trust-chain-anew --on-conflict merge`"
        if held
        else "`mycelium memory anchor --trust-chain-anew`"
    )
    return (
        f"if the chain's file was set back with your knowledge: {anew}; if not, put the one that was seen"
        f" before back at {chain_file(session)}"
    )


def _verified_apart(session: Session, context: AgentContext) -> tuple[Verification, Path]:
    """What a copy of the memory says, and where that copy was."""
    from mycelium_sdk.context import AgentContext
    from mycelium_sdk.memory.agent_memory import AgentMemory

    with copied_home(session, context) as home:
        onchain = dataclasses.replace(session.configuration.onchain, chain_file=chain_file(session))
        configuration = dataclasses.replace(session.configuration, onchain=onchain, home=home)
        with AgentContext(configuration=configuration) as apart, AgentMemory(apart) as memory:
            return memory.verify(), home.root


def _anchor(context: AgentContext) -> Anchor | None:
    client = context.found_anchor_client()
    return None if client is None else client.get_anchor(context.address)
