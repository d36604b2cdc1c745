"""What jax calls when it looks for platforms."""

from __future__ import annotations


def initialize() -> None:
    """Registers the platform; jax calls it through the entry point `jax_plugins`."""
    from jax._src import xla_bridge

    from xlalite.interop.jax.callbacks import register_callbacks
    from xlalite.interop.jax.lowerings import register_lowerings
    from xlalite.interop.jax.platform import PRIORITY, platform_name
    from xlalite.interop.jax.table import capsule

    xla_bridge.register_plugin("xlalite", priority=PRIORITY, c_api=capsule())
    register_lowerings(platform_name())
    register_callbacks(platform_name())
