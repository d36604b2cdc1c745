"""What jax calls when it looks for platforms."""

from __future__ import annotations

PLUGIN = "xlalite"
_PRIORITY = -100  # below the platform cpu: nobody gets xlalite who has not asked for it


def initialize() -> None:
    """Registers the platform if `JAX_PLATFORMS` names it; jax calls it through the entry point `jax_plugins`."""
    import jax

    if PLUGIN not in str(getattr(jax.config, "jax_platforms", "")).split(","):
        return
    from jax._src import xla_bridge

    from xlalite.interop.jax.buffer_callbacks import register_buffer_callbacks
    from xlalite.interop.jax.callbacks import register_callbacks
    from xlalite.interop.jax.lowerings import register_lowerings
    from xlalite.interop.jax.platform import platform_name
    from xlalite.interop.jax.table import capsule

    tried: set[str] = getattr(xla_bridge, "_nonexperimental_plugins", set())
    tried.add(PLUGIN)
    xla_bridge.register_plugin(PLUGIN, priority=_PRIORITY, c_api=capsule())
    register_lowerings(platform_name())
    register_callbacks(platform_name())
    register_buffer_callbacks(platform_name())
