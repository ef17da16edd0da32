"""Everything that is Triton, CUDA graphs or TF32, behind plain functions."""
