"""Functions that convert the sums of a tile to the element type of the result."""

from __future__ import annotations

from xlalite.backends.codegen.arrays.types import representation, to_memory
from xlalite.backends.codegen.kernels.dot.numbers import Numbers
from xlalite.backends.codegen.llvm import I64, PTR, VOID, Function, FunctionBuilder, ModuleBuilder, Value, vector


def converter(module: ModuleBuilder, numbers: Numbers, lanes: int) -> Function:
    """`void convert(ptr sums, ptr result, i64 height, i64 width, i64 sums_line, i64 line)`, shared by all programs.

    Lines of sums are whole vectors, of which the part beyond the width has no meaning.

    Args:
        module: Where it is declared.
        numbers: The types of the product.
        lanes: Lanes of a vector of sums.
    """
    kept, memory = numbers.kept, representation(numbers.result).memory

    def build(fb: FunctionBuilder) -> None:
        sums, results, height, width, sums_line, line = fb.parameters
        if numbers.stores_sums:
            fb.only_calls()
        else:
            fb.is_as_written = True
        with fb.loop(0, height) as row:
            read = fb.gep(kept, sums, fb.mul(row, sums_line))
            write = fb.gep(memory, results, fb.mul(row, line))
            if numbers.stores_sums:
                fb.memcpy(write, read, fb.mul(width, kept.size_bytes))
            else:
                convert(fb, read, write, width)
        fb.ret()

    def convert(fb: FunctionBuilder, read: Value, write: Value, width: Value) -> None:
        part = fb.alloca(vector(memory, lanes), align=memory.size_bytes)
        with fb.loop(0, width, lanes) as column:
            total = fb.load(vector(kept, lanes), fb.gep(kept, read, column), kept.size_bytes)
            found = to_memory(fb, numbers.result, numbers.finish(fb, total))
            place, left = fb.gep(memory, write, column), fb.sub(width, column)
            branch = fb.if_else(fb.icmp("sge", left, lanes))
            with branch.then():
                fb.store(found, place, memory.size_bytes)
                branch.yield_()
            with branch.otherwise():
                fb.store(found, part, memory.size_bytes)
                fb.memcpy(place, part, fb.mul(left, memory.size_bytes))
                branch.yield_()

    key = ("converter", kept, numbers.result, lanes)
    kinds = ("noalias readonly", "noalias", *("",) * 4)
    return module.shared_function(key, "dot_convert", VOID, (PTR, PTR, *(I64,) * 4), kinds, build)
