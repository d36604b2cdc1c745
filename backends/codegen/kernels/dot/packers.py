"""Functions that pack."""

from __future__ import annotations

from xlalite.backends.codegen.kernels.dot.numbers import Numbers
from xlalite.backends.codegen.kernels.dot.packing import Packer, Packing
from xlalite.backends.codegen.llvm import I32, I64, PTR, VOID, Function, FunctionBuilder, ModuleBuilder


def packer(module: ModuleBuilder, numbers: Numbers, packing: Packing) -> Function:
    """The function of a packing (`Packer`), shared by all programs; it takes the packing's strides."""
    is_word = packing.word > 1
    kind = _kind(packing)
    packing = packing.general
    key = ("packer", numbers.words if is_word else numbers.kept, packing)

    def build(fb: FunctionBuilder) -> None:
        fb.is_as_written = True
        fb.ret(kind(fb, numbers, packing).emit())

    return module.shared_function(
        key,
        "dot_pack",
        I32 if is_word and numbers.widened is not None else VOID,
        (PTR, PTR, *(I64,) * 9),
        ("noalias readonly", "noalias", *("",) * 9),
        build,
    )


def _kind(packing: Packing) -> type[Packer]:
    """Who packs, imported now: few programs have words."""
    if packing.in_lines:
        from xlalite.backends.codegen.kernels.dot.line_packing import LinePacker

        return LinePacker
    if packing.word > 1:
        from xlalite.backends.codegen.kernels.dot.word_packing import WordPacker

        return WordPacker
    return Packer
