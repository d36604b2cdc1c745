"""The graph: operations, tensors, scopes, functions."""
