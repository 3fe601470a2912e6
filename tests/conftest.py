"""What holds for every test."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

from hypothesis import HealthCheck, settings

# Nothing that a test forgets to say may reach the home folder of whoever runs the tests.
os.environ["MYCELIUM_HOME"] = tempfile.mkdtemp(prefix="mycelium-tests-")
atexit.register(shutil.rmtree, os.environ["MYCELIUM_HOME"], ignore_errors=True)

# A deadline would let timing decide; the machine may be busy with other tests.
settings.register_profile("project", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("project")
