"""Everyday functions from numerical recipes, written as a user of NumPy writes them."""
