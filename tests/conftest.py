"""Shared by all tests."""

import torch
from hypothesis import HealthCheck, settings

# the nets here are tiny: a second thread costs more in hand-overs than it computes
torch.set_num_threads(1)

# No test may fail because the machine is busy (deadlines, slow generation) or because today's
# examples differ from yesterday's; `pytest --hypothesis-profile search` looks for new ones.
LOAD_DOES_NOT_MATTER = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("repeatable", derandomize=True, **LOAD_DOES_NOT_MATTER)
settings.register_profile("search", derandomize=False, **LOAD_DOES_NOT_MATTER)
settings.load_profile("repeatable")
