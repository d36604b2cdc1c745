"""Dumps of what a compilation makes, and the page that shows them."""
