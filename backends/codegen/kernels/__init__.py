"""Kernels: each file turns one shape of computation into one native function; the planner chooses."""
