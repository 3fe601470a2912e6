"""Who signed a transaction, and whether that is enough: weights against thresholds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stellar_sdk import Keypair
from stellar_sdk.exceptions import BadSignatureError, Ed25519PublicKeyInvalidError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mycelium_localnet.envelopes import Transaction

_MAX_WEIGHT = 255


class SignatureChecker:
    """The signatures of one transaction, while it is validated once. Remembers which of them were needed."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._used = [False] * len(transaction.signatures)

    def check(self, signers: Sequence[tuple[bytes, int]], needed: int) -> bool:
        """Whether signatures of `signers`, `(raw public key, weight)` each, reach the weight `needed`.

        As on the network: a signer counts once, at least one signature is needed even for a threshold of 0,
        and signatures beyond what is needed are not looked at (so they stay unused).
        """
        left = list(signers)
        total = 0
        for index, (hint, _) in enumerate(self._transaction.signatures):
            for place, (key, weight) in enumerate(left):
                if hint == key[-4:] and self._verify(key, index):
                    self._used[index] = True
                    total += min(weight, _MAX_WEIGHT)
                    if total >= needed:
                        return True
                    del left[place]
                    break
        return False

    def all_used(self) -> bool:
        """Whether every signature was needed for something."""
        return all(self._used)

    def _verify(self, key: bytes, index: int) -> bool:
        known = self._transaction.verified
        if (key, index) not in known:
            signature = self._transaction.signatures[index][1]
            known[key, index] = _is_signature(key, self._transaction.hash, signature)
        return known[key, index]


def _is_signature(key: bytes, message: bytes, signature: bytes) -> bool:
    try:
        Keypair.from_raw_ed25519_public_key(key).verify(message, signature)
    except (BadSignatureError, Ed25519PublicKeyInvalidError, ValueError, TypeError):
        return False
    return True
