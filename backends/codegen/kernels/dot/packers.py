"""Functions that pack."""

from __future__ import annotations

from xlalite.backends.codegen.kernels.dot.numbers import Numbers
from xlalite.backends.codegen.kernels.dot.packing import Packer, Packing
from xlalite.backends.codegen.kernels.dot.word_packing import WordPacker
from xlalite.backends.codegen.llvm import I32, I64, PTR, VOID, Function, ModuleBuilder


def packer(module: ModuleBuilder, numbers: Numbers, packing: Packing) -> Function:
    """The function of a packing (`Packer`), shared by all kernels of a module."""
    is_word = packing.word > 1
    key = ("packer", numbers.words if is_word else numbers.kept, packing)

    def build() -> Function:
        fb = module.function(
            module.unique_name("dot_pack"),
            I32 if is_word and numbers.widened is not None else VOID,
            (PTR, PTR, I64, I64, I64, I64),
            parameter_attributes=("noalias readonly", "noalias", "", "", "", ""),
            attributes=("nounwind", "noinline"),
            linkage="internal",
        )
        fb.ret((WordPacker if is_word else Packer)(fb, numbers, packing).emit())
        return fb.function

    return module.define_once(key, build)
