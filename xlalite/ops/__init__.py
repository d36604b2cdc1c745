"""The operations of graphs, a family a file, and the Python functions that make them.

Importing the package declares every operation.
"""
