"""A typed builder of LLVM IR text.

It exists because Python objects for each instruction cost more than LLVM itself: here an instruction is one checked
method call that appends one line. The text goes to LLVM's parser.

```
from xlalite.backends.codegen.llvm import F32, I64, PTR, VOID, ModuleBuilder, vector

module = ModuleBuilder("example")
fb = module.function("scale", VOID, (PTR, PTR, I64), parameter_attributes=("readonly", "", ""))
source, target, count = fb.parameters
lanes = module.target.lanes(32)
wide = vector(F32, lanes)
with fb.loop(0, count, lanes) as i:                 # count is a multiple of the lane count
    x = fb.load(wide, fb.gep(F32, source, i), align=4)
    y = fb.fadd(fb.fmul(x, 2.0), 1.0)               # numbers become splatted constants
    fb.store(y, fb.gep(F32, target, i), align=4)
fb.ret()
text = module.text()
```

Rules of the house: SSA values are numbered in text order, so a block is written in one go after `position_at`;
addresses are made by `gep` only (there is no inttoptr); a wrong operand raises `LLVMBuildError` where it is made.
Compiling the text is no business of this package.
"""

from xlalite.backends.codegen.llvm.control_flow import CarriedLoop, IfElse, WhileLoop
from xlalite.backends.codegen.llvm.emitter import AS_WRITTEN, BRIEF, Block, Phi
from xlalite.backends.codegen.llvm.errors import LLVMBuildError
from xlalite.backends.codegen.llvm.module_builder import FunctionBuilder, ModuleBuilder
from xlalite.backends.codegen.llvm.target import TargetInfo
from xlalite.backends.codegen.llvm.types import (
    BF16,
    F16,
    F32,
    F64,
    I1,
    I8,
    I16,
    I32,
    I64,
    I128,
    PTR,
    VOID,
    Type,
    TypeKind,
    array,
    integer,
    struct,
    vector,
    widened,
)
from xlalite.backends.codegen.llvm.value import (
    Function,
    Operand,
    Value,
    constant,
    constant_bits,
    lane_mask,
    lanes_of_mask,
    number_of,
    poison,
    undef,
    vector_constant,
    zero,
)

__all__ = [
    "AS_WRITTEN",
    "BF16",
    "BRIEF",
    "F16",
    "F32",
    "F64",
    "I1",
    "I8",
    "I16",
    "I32",
    "I64",
    "I128",
    "PTR",
    "VOID",
    "Block",
    "CarriedLoop",
    "Function",
    "FunctionBuilder",
    "IfElse",
    "LLVMBuildError",
    "ModuleBuilder",
    "Operand",
    "Phi",
    "TargetInfo",
    "Type",
    "TypeKind",
    "Value",
    "WhileLoop",
    "array",
    "constant",
    "constant_bits",
    "integer",
    "lane_mask",
    "lanes_of_mask",
    "number_of",
    "poison",
    "struct",
    "undef",
    "vector",
    "vector_constant",
    "widened",
    "zero",
]
