"""Functions that pack."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xlalite.backends.codegen.kernels.dot.numbers import Numbers
from xlalite.backends.codegen.kernels.dot.packing import Packer, Packing
from xlalite.backends.codegen.kernels.dot.turning import turner
from xlalite.backends.codegen.llvm import I32, I64, PTR, VOID, Function, FunctionBuilder, ModuleBuilder, Value

_LONG_RUN = 64
"""Elements that are turned at a time from which on the loops around that need not be fast."""


def pack(
    module: ModuleBuilder,
    fb: FunctionBuilder,
    callee: Callable[[Function], Value],
    numbers: Numbers,
    packing: Packing,
    arguments: Sequence[Value],
) -> Value | None:
    """Calls the function of a packing, which `callee` finds, and gives what it returns.

    The arguments are those of a `Packer`, the packing's strides being the last of them.
    """
    # Of contiguous x, a few y are packed at a time.
    is_long, packing = packing.source_y.run >= _LONG_RUN and not packing.source_x.is_contiguous, packing.general
    turning = (callee(_turner(module, numbers, packing)),) if packing.turns(numbers.kept) else ()
    only_calls = is_long and len(turning) > 0 and not numbers.in_matrices
    function = _packer(module, numbers, packing, only_calls=only_calls)
    return fb.call_pointer(callee(function), function.return_type, (*arguments, *turning))


def _packer(module: ModuleBuilder, numbers: Numbers, packing: Packing, *, only_calls: bool) -> Function:
    """The function of a packing, shared by all programs."""
    is_word = packing.word > 1
    kind, turning = _kind(packing), (PTR,) * packing.turns(numbers.kept)
    count = 11 if packing.has_planes else 9
    key = ("packer", numbers.words if is_word else numbers.kept, packing, only_calls)

    def build(fb: FunctionBuilder) -> None:
        fb.is_as_written = True
        if only_calls:
            fb.only_calls()
        fb.ret(kind(fb, numbers, packing).emit())

    return module.shared_function(
        key,
        "dot_pack",
        I32 if is_word and numbers.widened is not None else VOID,
        (PTR, PTR, *(I64,) * count, *turning),
        ("noalias readonly", "noalias", *("",) * (count + len(turning))),
        build,
    )


def _turner(module: ModuleBuilder, numbers: Numbers, packing: Packing) -> Function:
    """The function that turns lines for a packing."""
    if packing.word == 1:
        return turner(module, numbers, packing)
    from xlalite.backends.codegen.kernels.dot.word_turning import word_turner  # which few programs need

    return word_turner(module, numbers, packing)


def _kind(packing: Packing) -> type[Packer]:
    """Who packs, imported now: few programs have words."""
    if packing.in_lines:
        from xlalite.backends.codegen.kernels.dot.line_packing import LinePacker

        return LinePacker
    if packing.word > 1:
        from xlalite.backends.codegen.kernels.dot.word_packing import WordPacker

        return WordPacker
    return Packer
