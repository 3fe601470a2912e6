"""What holds for every test."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# A deadline would let timing decide; the machine may be busy with other tests.
settings.register_profile("project", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("project")
