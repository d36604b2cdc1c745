"""What the printer writes, as presets with XLA's names."""

from __future__ import annotations

from xlalite.hlo.records import dataclass


@dataclass(frozen=True, slots=True)
class PrintOptions:
    """Choices of the printer; the fields have XLA's names, the defaults are XLA's.

    Attributes:
        percent: Whether names start with `%`.
        program_shape: Whether computations show their signature.
        operand_shape: Whether operands are preceded by their shape.
        index_comments: Whether every fifth operand is preceded by its number.
        metadata: Whether metadata and source location tables are written.
        backend_config: Whether the backend's configuration is written.
        control_dependencies: Whether control predecessors are written.
        large_constants: Whether constants of more than ten elements, and tuples, are written in full.
        essential_constants: Whether only constants that steer optimisation are written: zeros, ones, integers.
        full_bodies: Whether a called computation's body stands where its name would.
        canonical_names: Whether instructions are called `tmp_0`, `tmp_1`, ... and computations lose their names.
        ids: Whether names of module and computations are written.
        short_async: Whether asynchronous operations that wrap a single one are written as `add-start` and the like,
            without the name of the computation.
    """

    percent: bool = True
    program_shape: bool = True
    operand_shape: bool = False
    index_comments: bool = True
    metadata: bool = True
    backend_config: bool = True
    control_dependencies: bool = True
    large_constants: bool = False
    essential_constants: bool = False
    full_bodies: bool = False
    canonical_names: bool = False
    ids: bool = True
    short_async: bool = True


DEFAULT = PrintOptions()
LOSSLESS = PrintOptions(large_constants=True, short_async=False)
SHORT_PARSABLE = PrintOptions(
    percent=False,
    program_shape=False,
    index_comments=False,
    metadata=False,
    control_dependencies=False,
    large_constants=True,
)
CANONICAL = PrintOptions(
    percent=False,
    program_shape=False,
    operand_shape=True,
    index_comments=False,
    metadata=False,
    backend_config=False,
    control_dependencies=False,
    full_bodies=True,
    canonical_names=True,
)
FINGERPRINT = PrintOptions(
    percent=False,
    program_shape=False,
    operand_shape=True,
    index_comments=False,
    metadata=False,
    backend_config=False,
    control_dependencies=False,
    essential_constants=True,
    full_bodies=True,
    canonical_names=True,
    ids=False,
)

PRESETS = {
    "default": DEFAULT,
    "lossless": LOSSLESS,
    "short_parsable": SHORT_PARSABLE,
    "canonical": CANONICAL,
    "fingerprint": FINGERPRINT,
}


def preset_options(preset: str | PrintOptions) -> PrintOptions:
    """The options of a preset.

    Raises:
        ValueError: There is no such preset.
    """
    if isinstance(preset, PrintOptions):
        return preset
    if preset not in PRESETS:
        raise ValueError(f"printing HLO: found preset {preset!r}, expected one of {', '.join(PRESETS)}")
    return PRESETS[preset]
