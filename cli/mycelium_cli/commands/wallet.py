"""`mycelium wallet ...`: the encrypted key file."""

from __future__ import annotations

from mycelium_cli.groups import LazyGroup, command
from mycelium_cli.obstacles import is_there
from mycelium_cli.output import progress
from mycelium_cli.session import current_session


@command(
    "new", example="mycelium wallet new\nmycelium wallet new --wallet keys/agent.json", shared=("--wallet",)
)
def new() -> None:
    """Make a wallet with a new account.

    The passphrase is asked for, or comes from MYCELIUM_DECRYPT_KEY. A wallet that exists is never
    overwritten. Keep the file and its passphrase: neither can be replaced.
    """
    from mycelium_cli.passphrase import new_passphrase
    from mycelium_sdk.errors import WalletError
    from mycelium_sdk.files import file_errors
    from mycelium_sdk.wallet import Wallet, already_there

    current = current_session()
    path = current.configuration.wallet.path
    with file_errors(path, "create", WalletError):  # before anybody types a passphrase
        taken = is_there(path)
    if taken:
        raise already_there(path)
    passphrase = new_passphrase()
    with progress("making the wallet"):
        made = Wallet.create(path, passphrase)
    current.result(
        {"address": made.address, "path": str(made.path)}, f"account  {made.address}", f"wallet   {made.path}"
    )


@command("show", example="mycelium wallet show --json", shared=("--wallet",))
def show() -> None:
    """Show the wallet's account and where its file is. Needs no passphrase."""
    current = current_session()
    found = current.wallet()
    current.result(
        {"address": found.address, "path": str(found.path)},
        f"account  {found.address}",
        f"wallet   {found.path}",
    )


wallet = LazyGroup(
    "wallet",
    help="The wallet: an account's key, encrypted under a passphrase.",
    sources={"new": "mycelium_cli.commands.wallet:new", "show": "mycelium_cli.commands.wallet:show"},
    example="mycelium wallet show",
)
