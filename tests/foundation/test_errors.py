"""The tree of errors and the words for verdicts."""

from __future__ import annotations

import pickle
import re
from typing import Any

import pytest

from mycelium_sdk import errors
from mycelium_sdk.errors import MyceliumError
from mycelium_sdk.verdicts import Reason, Verdict, describe, next_step

_REQUIRED: dict[str, dict[str, Any]] = {
    "TransactionFailed": {"result_code": "txBAD_SEQ", "hash": "ab"},
    "Unsettled": {"hash": "ab"},
    "ContractFailed": {"code": 2, "name": "VERSION_CONFLICT"},
    "VersionConflict": {"expected": 1, "actual": 2},
    "VerificationError": {"verdict": Verdict.TAMPERED},
    "NonCanonical": {"reason": Reason.ENCODING},
}
_EXIT_CODES = {
    errors.UsageError: 2,
    errors.ConfigError: 3,
    errors.WalletError: 4,
    errors.BackendError: 5,
    errors.ChainError: 6,
    errors.VerificationError: 7,
    errors.BlobError: 8,
}


def _tree(kind: type[MyceliumError]) -> list[type[MyceliumError]]:
    return [kind, *(below for child in kind.__subclasses__() for below in _tree(child))]


PUBLIC = sorted(
    {kind for kind in _tree(MyceliumError) if kind.__module__ == errors.__name__ and kind.__name__[0] != "_"},
    key=lambda kind: kind.__name__,
)


@pytest.mark.parametrize("kind", PUBLIC, ids=lambda kind: kind.__name__)
def test_every_error_survives_the_way_to_another_process(kind: type[MyceliumError]) -> None:
    error = kind("what is wrong", hint="what to do", **_REQUIRED.get(kind.__name__, {}))
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert type(copy) is kind
    assert (str(copy), copy.args, vars(copy)) == ("what is wrong", error.args, vars(error))


@pytest.mark.parametrize("kind", PUBLIC, ids=lambda kind: kind.__name__)
def test_every_error_has_the_exit_code_of_its_branch(kind: type[MyceliumError]) -> None:
    branch = next((branch for branch in _EXIT_CODES if issubclass(kind, branch)), None)
    assert kind.exit_code == (1 if branch is None else _EXIT_CODES[branch])
    assert issubclass(kind, ValueError) == (branch in (errors.UsageError, errors.VerificationError))


def test_the_docstring_draws_the_tree() -> None:
    drawn = re.findall(r"[├└]── (\w+)", errors.__doc__ or "")
    assert sorted(drawn) == [kind.__name__ for kind in PUBLIC if kind is not MyceliumError]


def test_only_waiting_helps_with_retryable_errors() -> None:
    assert {kind.__name__ for kind in PUBLIC if kind.retryable} == {
        "BlobUnavailable",
        "StoreLocked",
        "StoreUnavailable",
        "ChainUnavailable",
    }


def test_the_hint_defaults_to_the_next_step_of_the_verdict() -> None:
    assert errors.Rollback("older").hint == next_step(Verdict.ROLLBACK)
    assert errors.Rollback("older", hint="x").hint == "x"
    assert errors.BackendError("broken").hint is None
    assert errors.BackendError("broken", verdict=Verdict.TAMPERED).hint == next_step(Verdict.TAMPERED)


def test_errors_carry_their_verdict() -> None:
    verdicts = {kind.__name__: kind.default_verdict for kind in PUBLIC if kind.default_verdict}
    assert verdicts == {
        "AnchorArchived": Verdict.ARCHIVED,
        "BlobUnavailable": Verdict.UNAVAILABLE,
        "ChainReset": Verdict.CHAIN_RESET,
        "ChainUnavailable": Verdict.UNAVAILABLE,
        "Fork": Verdict.FORK,
        "LimitExceeded": Verdict.LIMIT,
        "NonCanonical": Verdict.NON_CANONICAL,
        "NotAnchored": Verdict.NOT_ANCHORED,
        "Rollback": Verdict.ROLLBACK,
        "Tampered": Verdict.TAMPERED,
        "UnanchoredWrites": Verdict.AHEAD,
        "Unsettled": Verdict.UNSETTLED,
        "UntrustedSource": Verdict.UNTRUSTED_SOURCE,
        "VersionConflict": Verdict.VERSION_CONFLICT,
        "WrongDomain": Verdict.WRONG_DOMAIN,
        "WrongOwner": Verdict.WRONG_OWNER,
    }


def test_a_failed_verification_always_has_a_verdict() -> None:
    with pytest.raises(TypeError, match="verdict"):
        errors.VerificationError("no")


def test_extra_facts_are_attributes() -> None:
    failed = errors.TransactionFailed("no", result_code="txBAD_SEQ")
    assert (failed.result_code, failed.hash) == ("txBAD_SEQ", None)
    conflict = errors.VersionConflict("no", expected=1)
    assert (conflict.expected, conflict.actual, conflict.verdict) == (1, None, Verdict.VERSION_CONFLICT)
    assert errors.WrongOwner("no").reason is Reason.OWNER
    assert errors.LimitExceeded("no").reason is Reason.SIZE


def test_the_verdicts_are_the_public_ones() -> None:
    listed = (
        "IN_SYNC AHEAD TAMPERED DIVERGED NOT_ANCHORED ROLLBACK FORK CHAIN_RESET WRONG_OWNER WRONG_DOMAIN "
        "NON_CANONICAL UNAVAILABLE ARCHIVED UNTRUSTED_SOURCE LIMIT NOT_A_READER UNSETTLED VERSION_CONFLICT"
    )
    assert [str(verdict) for verdict in Verdict] == listed.split()


@pytest.mark.parametrize("verdict", Verdict)
def test_every_verdict_has_words_for_a_person(verdict: Verdict) -> None:
    for words in (describe(verdict), next_step(verdict)):
        assert words[0].isupper()
        assert words.endswith((".", "`."))
    assert describe(verdict) != next_step(verdict)
