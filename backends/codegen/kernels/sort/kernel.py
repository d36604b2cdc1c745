"""The sort kernel: each row is brought into order in memory of its own and written back.

A comparator that compares the same function of both sides is an order of keys; any other is asked. Few long rows are
divided by value: each task looks at all of a row, takes what lies between two words of a sorted sample, and writes it
behind what is smaller.
"""

from __future__ import annotations

import math

from xlalite.backends.codegen.kernels.estimate import Work
from xlalite.backends.codegen.kernels.kernel import Declined, Kernel, KernelRequest
from xlalite.backends.codegen.kernels.kernel_entry import open_kernel
from xlalite.backends.codegen.kernels.scratch import own_slot, parts_of
from xlalite.backends.codegen.kernels.sort.columns import Columns, column_sizes, groups_of, has_columns
from xlalite.backends.codegen.kernels.sort.keys import has_plain_nans, key_type, stored_keys
from xlalite.backends.codegen.kernels.sort.quicksort import can_part
from xlalite.backends.codegen.kernels.sort.records import POSITION, Records
from xlalite.backends.codegen.kernels.sort.rows import Rows
from xlalite.backends.codegen.llvm import Function, ModuleBuilder, Value
from xlalite.hlo.ops.evaluation.sorting_evaluation import SortKey, sort_key
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.decision import Number
from xlalite.passes.fusion.kernel_shape import KernelShape

_NS_A_RECORD, _NS_A_COMPARISON = 3.0, 4.0
"""What a record costs about in the order of keys, and a comparator asked for two positions."""
_PARTS, _SHORTEST_PARTED = 4, 1 << 15


def plan_sort(request: KernelRequest, shape: KernelShape) -> SortKernel | Declined:
    """The kernel that sorts rows."""
    sort = request.body.root
    dims, dimension = shape.domain.dims, sort.attrs.dimension
    length = dims[dimension]
    if length >= 1 << (POSITION.bits - 1):
        return Declined("rows are longer than positions count")
    key = sort_key(sort.called_computations[0])
    if key is None:
        return SortKernel(request, dims, dimension, None, None, Records(length, None, 0, request.target))
    dtype = key.side.shape.dtype
    stored: int | None = None
    if key.side.opcode == "parameter" and (key.is_total or not dtype.is_floating or has_plain_nans(dtype)):
        stored = stored_keys(sort.operand(key.side.attrs.number // 2))
    position_bits = 0 if stored is not None and len(sort.operands) == 1 else max(length - 1, 1).bit_length()
    records = Records(length, key_type(dtype), position_bits, request.target)
    return SortKernel(request, dims, dimension, key, stored, records)


@dataclass(frozen=True, slots=True)
class SortKernel(Kernel):
    """A sort of rows.

    Attributes:
        dims: Sizes of each operand.
        dimension: The one along which rows lie.
        key: What rows are ordered by; None where only the comparator knows.
        stored: The parameter whose numbers are the keys, as they lie in memory; None where keys are computed.
        records: What is sorted.
    """

    dims: tuple[int, ...]
    dimension: int
    key: SortKey | None
    stored: int | None
    records: Records

    @property
    def extent(self) -> int:
        """The parts of all rows, or groups of them."""
        if self._has_columns:
            return self._rows // self.dims[-1] * groups_of(self.dims, self.records)
        return self._rows * self._parts

    @property
    def scratch_bytes(self) -> int:
        """Records in two buffers, and counters."""
        return sum(self._sizes)

    @property
    def figures(self) -> dict[str, Number]:
        """Parts of a row, bits of a record."""
        return {"parts": self._parts, "word_bits": self.records.word.bits} if self.key is not None else {}

    @property
    def _has_columns(self) -> bool:
        return has_columns(self.dims, self.dimension, self.records)

    @property
    def _sizes(self) -> tuple[int, ...]:
        return column_sizes(self.records) if self._has_columns else self.records.sizes

    @property
    def _length(self) -> int:
        return self.dims[self.dimension]

    @property
    def _rows(self) -> int:
        return math.prod(size for dim, size in enumerate(self.dims) if dim != self.dimension)

    @property
    def _parts(self) -> int:
        """In how many parts a row is divided."""
        is_parted = self.records.is_joined and can_part(self.request.target)
        return _PARTS if is_parted and self._rows < _PARTS and self._length >= _SHORTEST_PARTED else 1

    def estimate_ns(self, work: Work) -> float:
        """By records, or by comparisons."""
        count = math.prod(self.dims)
        if self.key is not None:
            return count * _NS_A_RECORD
        return count * _NS_A_COMPARISON * max(1.0, math.log2(max(self._length, 2)))

    def emit(self, module: ModuleBuilder, name: str) -> Function:
        """Sorts the parts [begin, end)."""
        entry = open_kernel(module, name, self.request)
        fb = entry.fb
        if math.prod(self.dims):
            with own_slot(entry, self.scratch_bytes) as slot:
                buffers = parts_of(fb, slot, self._sizes)
                details = (entry, self.request, self.dims, self.dimension, self.key, self.stored, self.records)
                if self._has_columns:
                    with fb.loop(entry.begin, entry.end) as group:
                        Columns(*details).sort_group(group, buffers)
                else:
                    self._sort_rows(Rows(*details), buffers)
        fb.ret()
        return entry.function

    def _sort_rows(self, rows: Rows, buffers: list[Value]) -> None:
        entry, parts = rows.entry, self._parts
        fb = entry.fb
        if parts == 1:
            with fb.loop(entry.begin, entry.end) as row:
                rows.sort_row(row, buffers)
            return
        with fb.while_loop([entry.begin]) as loop:
            (unit,) = loop.values
            loop.continue_while(fb.icmp("slt", unit, entry.end))
            first = fb.urem(unit, parts)
            end = fb.smin(fb.add(first, fb.sub(entry.end, unit)), parts)
            rows.sort_parts(fb.udiv(unit, parts), buffers, (first, end), parts)
            loop.yield_(fb.add(unit, fb.sub(end, first)))
