"""The entry function: kernels, control flow and calls of the evaluator in the order of the schedule."""
