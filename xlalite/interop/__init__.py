"""Doors for programs of other frameworks; each needs its framework, and nothing here is imported before it is used."""
