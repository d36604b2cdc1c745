"""What jax has for the platform cpu alone serves here, too: rules of linear algebra, donated arguments, callbacks.

These are private names of jax: where one is missing, what it gives is missing, and the platform still works.
"""

from __future__ import annotations

from collections import ChainMap


def register_lowerings(platform_name: str) -> None:
    """Adds the rules of the platform cpu, those registered later among them, and says that arguments can be donated."""
    from jax._src.interpreters import mlir

    rules = getattr(mlir, "_platform_specific_lowerings", {})
    own = rules.get(platform_name, {})
    if "cpu" in rules and platform_name != "cpu" and not isinstance(own, ChainMap):
        rules[platform_name] = ChainMap(own, rules["cpu"])
    donating = getattr(mlir, "_platforms_with_donation", [])
    if platform_name not in donating:
        donating.append(platform_name)
