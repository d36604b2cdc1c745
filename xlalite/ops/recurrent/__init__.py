"""Cells of recurrent networks, the loops over time that run them, and what is learned on sequences."""
