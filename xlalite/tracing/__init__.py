"""`xlalite.jit`: functions run on arrays without values, and what they do with them is recorded as a graph."""
