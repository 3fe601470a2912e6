"""What holds for every test."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, settings

from tests.canaries.watch import begin, watched_folders

if TYPE_CHECKING:
    import pytest

__all__ = ["watched_folders"]

# Nothing that a test forgets to say may reach the home folder of whoever runs the tests.
os.environ["MYCELIUM_HOME"] = tempfile.mkdtemp(prefix="mycelium-tests-")
atexit.register(shutil.rmtree, os.environ["MYCELIUM_HOME"], ignore_errors=True)

# A shell without job control starts its background jobs with SIGINT ignored, and programs inherit that: the
# tests that interrupt one would wait for its end in vain.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A deadline would let timing decide; the machine may be busy with other tests.
settings.register_profile("project", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("project")


def pytest_configure(config: pytest.Config) -> None:
    """Watch where secrets come out, from the first test to the last."""
    begin(config).add_folder(Path(os.environ["MYCELIUM_HOME"]))
