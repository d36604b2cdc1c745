"""From a module to linked code: passes, stages, the cache, the linker."""
