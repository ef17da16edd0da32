"""Everything that is CUDA graphs, TF32 or matrix products for trials side by side."""
