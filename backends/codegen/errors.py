"""Errors of the CPU backend's code generation."""

from __future__ import annotations

from xlalite.hlo.errors import CodegenError


class UnsupportedOperationError(CodegenError):
    """An operation, or a use of it, that the backend has no code for; names the instruction."""
