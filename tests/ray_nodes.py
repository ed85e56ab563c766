"""How the Ray clusters of the tests are set up."""

from __future__ import annotations

QUICK = {"health_check_initial_delay_ms": 1000, "health_check_period_ms": 1000,
         "health_check_timeout_ms": 10000, "health_check_failure_threshold": 5}  # fmt: skip
"""A node that is lost is missed after five seconds, not half a minute; a slow one is not lost."""
