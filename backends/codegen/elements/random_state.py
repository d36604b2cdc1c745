"""How code refers to the counter of random numbers; apart from the code itself, for linkers that know no LLVM."""

RANDOM_STATE = "xlalite_random_state"
"""The name of a 128-bit number."""
