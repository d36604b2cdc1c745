"""Which operations of a graph are compiled together, and why the others are not.

Level 4 of the house: knows graphs, and neither passes, backends nor sessions. Begin with `cluster_operations.py`.
"""
