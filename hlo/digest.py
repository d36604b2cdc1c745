"""BLAKE2b as `hashlib` has it, without OpenSSL, which takes longer to load than all digests of a program."""

from __future__ import annotations

try:
    from _blake2 import blake2b
except ImportError:  # a Python that has it elsewhere
    from hashlib import blake2b

__all__ = ["blake2b"]
