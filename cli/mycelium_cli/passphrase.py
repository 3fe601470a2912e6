"""Asking a person for the wallet's passphrase, without echo and only at a terminal."""

from __future__ import annotations

import os
import sys
import warnings

from mycelium_cli.output import to_stderr
from mycelium_sdk.config import DECRYPT_KEY_VARIABLE
from mycelium_sdk.errors import PassphraseRequired, WalletError

__all__ = ["existing_passphrase", "new_passphrase"]

_ATTEMPTS = 3


def existing_passphrase() -> str:
    """The passphrase of a wallet that exists: from MYCELIUM_DECRYPT_KEY, else asked for.

    Raises:
        PassphraseRequired: neither the variable nor a terminal is there, or the person gave none.
    """
    return _from_environment() or _ask("Passphrase of the wallet: ", "the wallet's passphrase is needed")


def new_passphrase() -> str:
    """The passphrase for a new wallet: from MYCELIUM_DECRYPT_KEY, else asked for twice.

    Raises:
        PassphraseRequired: see `existing_passphrase`. WalletError: the two did not agree, three times.
    """
    found = _from_environment()
    if found:
        return found
    why = "a passphrase must be chosen for the new wallet"
    for _ in range(_ATTEMPTS):
        first = _ask("Passphrase for the new wallet: ", why)
        if first == _ask("The same once more: ", why):
            return first
        to_stderr("The two are not the same.")
    raise WalletError("no passphrase was chosen", hint="try again; nothing was made")


def _from_environment() -> str | None:
    from mycelium_sdk.wallet import find_passphrase

    return find_passphrase()


def _ask(prompt: str, why: str) -> str:
    if not _somebody_is_there():
        raise _missing(f"{why}, and there is no terminal to ask for it")
    import getpass

    with warnings.catch_warnings():
        warnings.simplefilter("error", getpass.GetPassWarning)
        try:
            answer = getpass.getpass(prompt)
        except EOFError:
            raise _missing("no passphrase was given") from None
        except getpass.GetPassWarning:
            raise _missing("the passphrase cannot be asked for without showing it") from None
    if not answer:
        raise PassphraseRequired("the passphrase is empty", hint="run it again and type one")
    return answer


def _somebody_is_there() -> bool:
    """Whether a person can be asked, also where stdin is a pipe that brings a text: getpass asks at the
    terminal that this process belongs to. Where stderr is none either it is a script, which would hang."""
    if sys.stdin is not None and sys.stdin.isatty():
        return True
    if not sys.stderr.isatty():
        return False
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


def _missing(message: str) -> PassphraseRequired:
    return PassphraseRequired(message, hint=f"set the environment variable {DECRYPT_KEY_VARIABLE}")
