"""What jax has for the platform cpu alone serves here, too: rules of linear algebra, donated arguments, callbacks.

These are private names of jax: where one is missing, what it gives is missing, and the platform still works.
"""

from __future__ import annotations


def register_lowerings(platform_name: str) -> None:
    """Copies the rules of the platform cpu, and says that arguments can be donated."""
    from jax._src.interpreters import mlir

    rules = getattr(mlir, "_platform_specific_lowerings", {})
    for primitive, rule in rules.get("cpu", {}).items():
        rules[platform_name].setdefault(primitive, rule)
    donating = getattr(mlir, "_platforms_with_donation", [])
    if platform_name not in donating:
        donating.append(platform_name)
