"""The demonstration as a program: what `mycelium demo` runs. Start it with `python demos/lost_machine.py`."""

from __future__ import annotations

import sys

from mycelium_cli.main import run

if __name__ == "__main__":
    sys.exit(run(["demo", *sys.argv[1:]]))
