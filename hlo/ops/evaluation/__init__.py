"""How operations compute on NumPy, where that is more than a line."""
