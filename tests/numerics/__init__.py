"""How accurate the compiled functions are: all numbers of a type tried, or very many, and the table of the worst.

`PYTHONPATH=tests python -m numerics` fills docs/numerics.md anew, `... tanh power` the rows of these functions.
"""
