"""What a check of a memory can find: verdicts, reasons of refusal, and words for both.

A verdict is the answer to "does this memory agree with its anchor?". `verify` returns one, and errors carry
the same ones, so that a program can act on a member of one enumeration instead of searching texts. A reason
says why bytes were refused as a canonical blob.
"""

from __future__ import annotations

import enum


class Verdict(enum.StrEnum):
    """The outcome of comparing a memory, a blob or a chain with what was promised."""

    IN_SYNC = "IN_SYNC"
    AHEAD = "AHEAD"
    TAMPERED = "TAMPERED"
    DIVERGED = "DIVERGED"
    NOT_ANCHORED = "NOT_ANCHORED"
    ROLLBACK = "ROLLBACK"
    FORK = "FORK"
    CHAIN_RESET = "CHAIN_RESET"
    WRONG_OWNER = "WRONG_OWNER"
    WRONG_DOMAIN = "WRONG_DOMAIN"
    NON_CANONICAL = "NON_CANONICAL"
    UNAVAILABLE = "UNAVAILABLE"
    ARCHIVED = "ARCHIVED"
    UNTRUSTED_SOURCE = "UNTRUSTED_SOURCE"
    LIMIT = "LIMIT"
    NOT_A_READER = "NOT_A_READER"
    UNSETTLED = "UNSETTLED"
    VERSION_CONFLICT = "VERSION_CONFLICT"


class Reason(enum.StrEnum):
    """Why bytes were refused as a canonical blob: carried by `NonCanonical` and its kin."""

    SIZE = "SIZE"
    """More bytes than the caller's limit (verdict LIMIT)."""
    NOT_ASCII = "NOT_ASCII"
    """A byte above 0x7F: a byte order mark, UTF-16, or text that was not escaped."""
    OWNER = "OWNER"
    """A well-formed blob of another account (verdict WRONG_OWNER)."""
    STRUCTURE = "STRUCTURE"
    """Not the one shape that format 1 knows: other, missing, repeated or reordered keys, white space, or a
    value that is not of the right kind.
    """
    TRUNCATED = "TRUNCATED"
    """The bytes end before the blob does."""
    TRAILING = "TRAILING"
    """There are bytes after the blob's end."""
    ENCODING = "ENCODING"
    """A string is not written the one way that format 1 writes it, e.g. an upper-case escape or `\\/`."""
    NOT_TEXT = "NOT_TEXT"
    """A string holds a lone surrogate, which is not text: it has no UTF-8 encoding."""
    TAG_ORDER = "TAG_ORDER"
    """The tags of a record are not sorted by code point."""
    RECORD_ORDER = "RECORD_ORDER"
    """The records are not sorted by content, then tags."""


_WORDS: dict[Verdict, tuple[str, str]] = {
    Verdict.IN_SYNC: (
        "The memory is exactly what the chain commits to.",
        "Nothing to do.",
    ),
    Verdict.AHEAD: (
        "The memory has writes that are not anchored yet.",
        "Anchor them: `mycelium memory anchor`.",
    ),
    Verdict.TAMPERED: (
        "What is stored is not what was written or anchored: it was changed behind the memory's back.",
        (
            "Keep what is genuine: `mycelium memory export rescued.jsonl --genuine`. Then load what is"
            " anchored: `mycelium memory rehydrate --on-conflict replace`, and import that file."
        ),
    ),
    Verdict.DIVERGED: (
        "The chain and this memory have gone different ways, most likely because another machine anchored.",
        (
            "Bring both together: `mycelium memory sync`. Or drop what is only here:"
            " `mycelium memory rehydrate --on-conflict replace`."
        ),
    ),
    Verdict.NOT_ANCHORED: (
        "This owner has never anchored a memory on this chain and contract.",
        "Anchor it: `mycelium memory anchor`. If you expected one, check network, contract and chain_file.",
    ),
    Verdict.ROLLBACK: (
        "This is an older state than one that was already verified here.",
        "Do not accept it. Ask another server; only on purpose, `--trust-chain-anew` goes on with it.",
    ),
    Verdict.FORK: (
        "The chain contradicts what was already verified here: it names another root, or another past.",
        (
            "Do not accept it: compare with a second RPC server. Only where the chain was set back with your"
            " knowledge: `mycelium memory rehydrate --trust-chain-anew --on-conflict merge`."
        ),
    ),
    Verdict.CHAIN_RESET: (
        "The chain was started anew, or set back, since this memory was anchored on it.",
        (
            "Check that it is looked for in the right place: `mycelium doctor`. If it was reset or wiped with"
            " your knowledge: `mycelium memory anchor --trust-chain-anew`."
        ),
    ),
    Verdict.WRONG_OWNER: (
        "This memory belongs to another account.",
        "Use the wallet of the account it belongs to, or the blob of this account.",
    ),
    Verdict.WRONG_DOMAIN: (
        "The server answers for another network, or the address is another contract.",
        "Check network, rpc_url and chain_file of `[onchain]`, and anchor_address of `[memory]`.",
    ),
    Verdict.NON_CANONICAL: (
        "The bytes are not a canonical memory blob.",
        "Nothing was loaded. Fetch the blob again; it must have been kept byte for byte.",
    ),
    Verdict.UNAVAILABLE: (
        "The chain or the source of the blob could not be reached, so nothing is known.",
        "Check the connection and the URL, then try again.",
    ),
    Verdict.ARCHIVED: (
        "The anchor exists but the network has archived its entry: its time to live ran out.",
        "Restore it: `mycelium memory keep-alive`; or anchor again: `mycelium memory anchor`.",
    ),
    Verdict.UNTRUSTED_SOURCE: (
        "The place where the blob should come from is one that is not fetched from.",
        "Get the blob yourself and put it into blobs/ of the home folder as ROOT.json, or use `fetch=`.",
    ),
    Verdict.LIMIT: (
        "Something is larger than the limit set for it.",
        "Raise the limit only if you know the source.",
    ),
    Verdict.NOT_A_READER: (
        "The blob is sealed, and this wallet is not among its readers.",
        "Ask the owner to publish it with this account as a reader.",
    ),
    Verdict.UNSETTLED: (
        "The transaction was sent, and whether it took effect is not known yet.",
        "Do not send it again by hand; run the command again and the transaction is looked up by its hash.",
    ),
    Verdict.VERSION_CONFLICT: (
        "Somebody else anchored this owner's memory in the meantime.",
        "Bring both together: `mycelium memory sync`.",
    ),
}


def describe(verdict: Verdict) -> str:
    """One sentence that says to a person what the verdict means."""
    return _WORDS[verdict][0]


def next_step(verdict: Verdict) -> str:
    """What a person can do about the verdict."""
    return _WORDS[verdict][1]
