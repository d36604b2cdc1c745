"""Functions that convert the sums of a tile to the element type of the result."""

from __future__ import annotations

from xlalite.backends.codegen.arrays.types import representation, to_memory
from xlalite.backends.codegen.kernels.dot.numbers import Numbers
from xlalite.backends.codegen.llvm import I64, PTR, VOID, Function, FunctionBuilder, ModuleBuilder, Value, vector


def converter(module: ModuleBuilder, numbers: Numbers, lanes: int) -> Function:
    """`void convert(ptr sums, ptr result, i64 height, i64 width, i64 sums_line, i64 line)`, shared by all programs.

    Args:
        module: Where it is declared.
        numbers: The types of the product.
        lanes: Lanes of a vector of sums.
    """

    def build(fb: FunctionBuilder) -> None:
        sums, results, height, width, sums_line, line = fb.parameters
        kept, memory = numbers.kept, representation(numbers.result).memory
        whole = fb.sub(width, fb.urem(width, lanes))
        with fb.loop(0, height) as row:
            read = fb.gep(kept, sums, fb.mul(row, sums_line))
            write = fb.gep(memory, results, fb.mul(row, line))

            def convert(column: Value, count: int) -> None:
                type_ = vector(kept, lanes) if count > 1 else kept
                total = fb.load(type_, fb.gep(kept, read, column), kept.size_bytes)
                stored = to_memory(fb, numbers.result, numbers.finish(fb, total))
                fb.store(stored, fb.gep(memory, write, column), memory.size_bytes)

            with fb.loop(0, whole, lanes) as column:
                convert(column, lanes)
            with fb.loop(whole, width) as column:
                convert(column, 1)
        fb.ret()

    key = ("converter", numbers.kept, numbers.result, lanes)
    kinds = ("noalias readonly", "noalias", *("",) * 4)
    return module.shared_function(key, "dot_convert", VOID, (PTR, PTR, *(I64,) * 4), kinds, build)
