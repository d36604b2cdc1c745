"""The tile in registers that sums outer products: vectors along one dimension, an element of the other in all lanes.

`void tile(ptr a, ptr b, ptr c, i64 depth, i1 adds)` computes c[i, j] (+)= sum over p of a[i, p] * b[p, j]. The sums are
in one chain each, so that an element does not depend on the tile that it lies in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xlalite.backends.codegen.kernels.dot.numbers import Numbers
from xlalite.backends.codegen.llvm import (
    I1,
    I64,
    PTR,
    VOID,
    Function,
    ModuleBuilder,
    Type,
    Value,
    lane_mask,
    vector,
    zero,
)


@dataclass(frozen=True, slots=True)
class OuterTile:
    """A tile. Strides are in elements; both operands are in the type of sums.

    Attributes:
        rows: Number of i.
        columns: Number of j; the last vector may be partly used.
        lanes: Lanes of a vector.
        a_row: Distance of a's rows.
        a_depth: Distance of a's columns.
        b_depth: Distance of b's rows.
        c_row: Distance of c's rows.
        chains: Number of sums that an element is split into, added at the end.
        adds: Whether `adds` counts: the sums may be added to those in c.
    """

    rows: int
    columns: int
    lanes: int
    a_row: int
    a_depth: int
    b_depth: int
    c_row: int
    chains: int = 1
    adds: bool = False


def outer_tile(module: ModuleBuilder, numbers: Numbers, tile: OuterTile) -> Function:
    """The function of a tile, shared by all kernels of a module."""
    key = ("outer tile", numbers.kept, tile)

    def build() -> Function:
        name = module.unique_name(f"dot_tile_{tile.rows}x{tile.columns}")
        return _OuterTileEmitter(module, name, numbers, tile).emit()

    return module.define_once(key, build)


class _OuterTileEmitter:
    def __init__(self, module: ModuleBuilder, name: str, numbers: Numbers, tile: OuterTile) -> None:
        self._fb = module.function(
            name,
            VOID,
            (PTR, PTR, PTR, I64, I1),
            parameter_attributes=("noalias readonly", "noalias readonly", "noalias", "", ""),
            attributes=("nounwind", "noinline"),
            linkage="internal",
        )
        self._numbers = numbers
        self._tile = tile
        self._kept: Type = numbers.kept
        self._vectors = -(-tile.columns // tile.lanes)
        self._wide = vector(self._kept, tile.lanes)
        self._align = self._kept.size_bytes

    def emit(self) -> Function:
        fb, tile = self._fb, self._tile
        a, b, c, depth, adds = fb.parameters
        count = tile.rows * self._vectors
        sums = [zero(self._wide)] * (count * tile.chains)
        whole: Value = depth
        if tile.chains > 1:
            whole = fb.sub(depth, fb.urem(depth, tile.chains))
        with fb.carried_loop(0, whole, tile.chains, [a, b, *sums]) as loop:
            now, later = loop.values[:2], list(loop.values[2:])
            for chain in range(tile.chains):
                part = slice(chain * count, (chain + 1) * count)
                later[part] = self._step(now[0], now[1], later[part], chain)
            loop.yield_(*self._advanced(now[0], now[1], tile.chains), *later)
        a, b, *sums = loop.results
        if tile.chains > 1:
            with fb.carried_loop(whole, depth, 1, [a, b, *sums[:count]]) as loop:
                later = self._step(loop.values[0], loop.values[1], loop.values[2:], 0)
                loop.yield_(*self._advanced(loop.values[0], loop.values[1], 1), *later)
            sums = [*loop.results[2:], *sums[count:]]
            sums = [self._joined(sums[number::count]) for number in range(count)]
        self._store(c, sums, adds)
        fb.ret()
        return fb.function

    def _advanced(self, a: Value, b: Value, steps: int) -> tuple[Value, Value]:
        fb, tile = self._fb, self._tile
        return fb.gep(self._kept, a, tile.a_depth * steps), fb.gep(self._kept, b, tile.b_depth * steps)

    def _step(self, a: Value, b: Value, sums: Sequence[Value], ahead: int) -> list[Value]:
        """The outer product at one p."""
        fb, tile = self._fb, self._tile
        lines = [self._load_line(b, number, ahead) for number in range(self._vectors)]
        after: list[Value] = []
        for row in range(tile.rows):
            offset = row * tile.a_row + ahead * tile.a_depth
            element = fb.load(self._kept, fb.gep(self._kept, a, offset) if offset else a, self._align)
            spread = fb.splat(element, tile.lanes)
            for number, line in enumerate(lines):
                total = sums[row * self._vectors + number]
                after.append(self._numbers.multiply_add(fb, spread, line, total))
        return after

    def _load_line(self, b: Value, number: int, ahead: int) -> Value:
        fb, tile = self._fb, self._tile
        offset = number * tile.lanes + ahead * tile.b_depth
        address = fb.gep(self._kept, b, offset) if offset else b
        mask = self._mask(tile.columns - number * tile.lanes)
        if mask is None:
            return fb.load(self._wide, address, self._align)
        return fb.masked_load(self._wide, address, mask, zero(self._wide), self._align)

    def _mask(self, count: int) -> Value | None:
        """The first `count` lanes; None for all."""
        lanes = self._tile.lanes
        return None if count >= lanes else lane_mask(lanes, count)

    def _joined(self, parts: Sequence[Value]) -> Value:
        """The sum of the chains of one element, by halves."""
        while len(parts) > 1:
            half = len(parts) // 2
            parts = [
                *(self._numbers.add(self._fb, parts[i], parts[i + half]) for i in range(half)),
                *parts[2 * half :],
            ]
        return parts[0]

    def _store(self, c: Value, sums: Sequence[Value], adds: Value) -> None:
        """Writes the sums to c; with `adds`, to those that are there."""
        fb, tile = self._fb, self._tile
        places = [(row, number) for row in range(tile.rows) for number in range(self._vectors)]
        offsets = [row * tile.c_row + number * tile.lanes for row, number in places]
        addresses = [fb.gep(self._kept, c, offset) if offset else c for offset in offsets]
        masks = [self._mask(tile.columns - number * tile.lanes) for _, number in places]
        if tile.adds:
            choice = fb.if_else(adds)
            with choice.then():
                found = [self._get(address, mask) for address, mask in zip(addresses, masks, strict=True)]
                choice.yield_(*(self._numbers.add(fb, a, b) for a, b in zip(found, sums, strict=True)))
            with choice.otherwise():
                choice.yield_(*sums)
            sums = choice.results
        for value, address, mask in zip(sums, addresses, masks, strict=True):
            self._put(value, address, mask)

    def _get(self, address: Value, mask: Value | None) -> Value:
        if mask is None:
            return self._fb.load(self._wide, address, self._align)
        return self._fb.masked_load(self._wide, address, mask, zero(self._wide), self._align)

    def _put(self, value: Value, address: Value, mask: Value | None) -> None:
        if mask is None:
            self._fb.store(value, address, self._align)
        else:
            self._fb.masked_store(value, address, mask, self._align)
