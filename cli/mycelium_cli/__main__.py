"""`python -m mycelium_cli`, the same as the command `mycelium`."""

from __future__ import annotations

from mycelium_cli.main import main

if __name__ == "__main__":
    main()
