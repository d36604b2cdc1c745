"""Algebraic rules in tables by family of operations; a rule is a function whose docstring is its identity."""
