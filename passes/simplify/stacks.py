"""Arrays that lie on one another, as `stack` makes them, and what is computed of all at once."""

from __future__ import annotations

from xlalite.hlo.building.construct import broadcast, scalar
from xlalite.hlo.ir.instruction import HloInstruction

_MOST_COMPUTED = 64
"""Operations on such arrays, before they are reduced, that are done for each of them."""


class Stack:
    """Arrays that lie on one another along a dimension, and what is computed of each of them alone."""

    def __init__(self, dimension: int, dims: tuple[int, ...]) -> None:
        self._dimension, self._size = dimension, dims[dimension]
        self._dims = (*dims[:dimension], 1, *dims[dimension + 1 :])
        self._pieces: dict[HloInstruction, list[HloInstruction]] = {}
        self._computed = 0
        self.is_one = False

    def holds(self, array: HloInstruction) -> bool:
        """Whether an array is made of such; it is one of them if there is a concatenation at the bottom."""
        attrs = array.attrs
        match array.opcode:
            case "concatenate":
                is_stack = attrs.dimension == self._dimension and len(array.operands) == self._size
                self.is_one |= is_stack
                return is_stack
            case "iota":
                return bool(attrs.iota_dimension == self._dimension)
            case "broadcast":
                return self._dimension not in attrs.dimensions
        self._computed += 1
        is_inside = array.op.is_elementwise and array.user_count == 1 and not array.is_root
        if not is_inside or self._computed * self._size > _MOST_COMPUTED:
            return False
        return all(
            operand.shape.dims == array.shape.dims and self.holds(operand) for operand in dict.fromkeys(array.operands)
        )

    def pieces(self, array: HloInstruction) -> list[HloInstruction]:
        """The pieces of size 1, loose but for those that are concatenated."""
        if array not in self._pieces:
            self._pieces[array] = self._made(array)
        return self._pieces[array]

    def _made(self, array: HloInstruction) -> list[HloInstruction]:
        match array.opcode:
            case "concatenate":
                return list(array.operands)
            case "iota":
                return [broadcast(scalar(number, array.shape.dtype), self._dims) for number in range(self._size)]
            case "broadcast":
                return [broadcast(array.operand(0), self._dims, array.attrs.dimensions)] * self._size
        parts = zip(*map(self.pieces, array.operands), strict=True)
        shape = array.shape.with_dims(self._dims)
        return [array.clone(operands, shape=shape, name=array.name) for operands in parts]
