"""Passes that prepare for code generation."""
