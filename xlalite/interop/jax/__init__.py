"""xlalite as a platform of jax: `JAX_PLATFORMS=xlalite,cpu python program.py`.

jax finds it by the entry point `jax_plugins`, hands programs over as StableHLO bytecode through the PJRT C API, and
gets executables back whose runs never enter Python. `explain` works on every platform.
"""

from xlalite.interop.jax.explaining import compiled as compiled, explain as explain
