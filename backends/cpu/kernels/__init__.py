"""The kinds of kernels: each file turns one shape of computation into one native function."""
