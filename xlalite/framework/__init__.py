"""Graphs, operations and tensors; how an operation is declared, lowered to HLO and differentiated.

Level 3 of the house: knows `xlalite.hlo` and nothing above it. In particular no passes, backends or sessions.
"""
