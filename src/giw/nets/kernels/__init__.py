"""Everything that is Triton, CUDA graphs or TF32, and where nets compute, by plain functions."""
