"""Everything that is Triton, CUDA graphs or TF32, behind plain functions."""

from giw.nets.kernels import loss_weights as loss_weights  # hands its kernel to giw.objective
