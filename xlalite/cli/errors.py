"""Errors of the command line."""

from __future__ import annotations

from xlalite.hlo.errors import XlaliteError


class UsageError(XlaliteError, ValueError):
    """The command line asks for something that does not exist."""
