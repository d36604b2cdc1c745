"""Runs graphs: pruning, plans of steps, variables, compilation of clusters and its cache, traces.

It knows the graph, clustering and the backends, but neither sessions nor configuration messages.
"""
