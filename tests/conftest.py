"""Shared by all tests."""

import torch

# the nets here are tiny: a second thread costs more in hand-overs than it computes
torch.set_num_threads(1)
