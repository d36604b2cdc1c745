"""Graphs of functions of one example as graphs for many: a rule a family of operations, and loops and branches."""
