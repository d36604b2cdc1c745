"""Fusion: which instructions share a kernel, decided with reasons, and the rewriting that follows."""

from xlalite.passes.fusion.fusion_pass import Fusion

__all__ = ["Fusion"]
