"""The entry function: kernels, control flow and host calls in the order of the schedule."""
