"""Shared by all tests."""

import re
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

try:
    import torch
except ImportError:
    torch = None
else:
    # the nets here are tiny: a second thread costs more in hand-overs than it computes
    torch.set_num_threads(1)

# What a shell runs in the background ignores Ctrl-C; tests of signals must hear theirs.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No test may fail because the machine is busy (deadlines, slow generation) or because today's
# examples differ from yesterday's; `pytest --hypothesis-profile search` looks for new ones.
LOAD_DOES_NOT_MATTER = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("repeatable", derandomize=True, **LOAD_DOES_NOT_MATTER)
settings.register_profile("search", derandomize=False, **LOAD_DOES_NOT_MATTER)
settings.load_profile("repeatable")

NEEDS_TORCH = re.compile(
    r"^(import torch|from torch|from giw\.(objective|nets|paper)|import giw\.(objective|nets|paper)"
    r"|from giw import .*\b(GIWClassifier|GIWObjective)\b)",
    re.MULTILINE,
)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item):
    """Skip a test that meets a net where torch is not installed."""
    try:
        return (yield)
    except ImportError as error:
        if torch is None and "needs torch" in str(error):
            pytest.skip(str(error))
        raise


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out a file of tests that imports torch where torch is not installed."""
    if torch is not None or collection_path.suffix != ".py":
        return None
    return True if NEEDS_TORCH.search(collection_path.read_text("utf-8")) else None


@pytest.fixture(name="torch")
def torch_module():
    """torch, for a test that needs it in a file that does not; skipped without it."""
    return pytest.importorskip("torch")
