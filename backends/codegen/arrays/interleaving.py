"""Lines whose neighbours belong to different vectors: columns of narrow matrices, parts of complex numbers.

Whole vectors are loaded and stored; shuffles pick the elements of a column out of them, or put those of all columns
side by side. No more is touched than what lies between the first element wanted and the last.
"""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.backends.codegen.llvm import FunctionBuilder, Type, Value, lane_mask, lanes_of_mask, vector, zero
from xlalite.hlo.records import dataclass


class Columns:
    """The columns of a matrix that lies in as many vectors as it has columns, row by row."""

    def __init__(self, fb: FunctionBuilder, vectors: Sequence[Value]) -> None:
        """Emits into `fb`, in the block of the vectors; each column when it is first asked for."""
        self._fb = fb
        self._vectors = vectors
        self._found: dict[int, Value] = {}
        self._halves: dict[int, Columns] = {}
        self._turned: dict[tuple[int, int], Value] = {}

    def column(self, number: int) -> Value:
        """The elements of a column, a lane for each row."""
        found = self._found.get(number)
        if found is None:
            found = self._found[number] = self._picked(number)
        return found

    def picked(self, places: Sequence[int]) -> Value:
        """What lies so many elements behind the first, a lane for each place; the vectors are one or two."""
        first, second = self._vectors[0], self._vectors[1] if len(self._vectors) > 1 else None
        if second is None and list(places) == list(range(first.type.lanes)):
            return first
        return self._fb.shuffle(first, second, places)

    def _picked(self, number: int) -> Value:
        count, lanes = len(self._vectors), self._vectors[0].type.lanes
        if count == 2:
            return self._fb.shuffle(self._vectors[0], self._vectors[1], range(number, 2 * lanes, 2))
        if count % 2 == 0:
            return self._half(number % 2).column(number // 2)
        turn = _Turn(count, lanes)
        place, order = turn.column(number)
        return self._fb.shuffle(self._after(turn, turn.stages, place), None, order)

    def _half(self, parity: int) -> Columns:
        """Every second column."""
        half = self._halves.get(parity)
        if half is None:
            pairs = zip(self._vectors[::2], self._vectors[1::2], strict=True)
            vectors = [Columns(self._fb, pair).column(parity) for pair in pairs]
            half = self._halves[parity] = Columns(self._fb, vectors)
        return half

    def _after(self, turn: _Turn, stages: int, place: int) -> Value:
        """The vector at a place after some stages."""
        if not stages:
            return self._vectors[place]
        found = self._turned.get((stages, place))
        if found is None:
            stage = stages - 1
            stays, comes = (self._after(turn, stage, (place + by) % turn.count) for by in (0, 1 << stage))
            found = self._turned[stages, place] = self._fb.shuffle(stays, comes, turn.blend(stage))
        return found


@dataclass(frozen=True, slots=True)
class _Turn:
    """How an odd number of columns comes out of as many vectors, or into them.

    Powers of two have no divisor in common with the number: the elements of a column lie in different lanes of the
    vectors, and a lane of column c is in the vector as many places behind that of column 0 as of any other lane. Once
    each lane is turned by the places of its column 0, each vector has a column, in another order. It takes a blend for
    each bit of a place and vector, where picking elements two vectors at a time takes as many shuffles as columns.

    Attributes:
        count: The number of columns and of vectors.
        lanes: Lanes of each.
    """

    count: int
    lanes: int

    @property
    def stages(self) -> int:
        """How many times vectors are blended with others: by one place, by two, four and so on."""
        return (self.count - 1).bit_length()

    def column(self, number: int) -> tuple[int, list[int]]:
        """Which vector has a column in the end, and the lane of each row."""
        return self._place(number), [(row * self.count + number) % self.lanes for row in range(self.lanes)]

    def blend(self, stage: int) -> list[int]:
        """The lanes that a stage takes out of the vector so many places behind, and those that stay."""
        return [lane + self.lanes * (self._place(-lane) >> stage & 1) for lane in range(self.lanes)]

    def _place(self, number: int) -> int:
        return number * pow(self.lanes, -1, self.count) % self.count


def side_by_side(fb: FunctionBuilder, columns: Sequence[Value]) -> list[Value]:
    """The vectors in which a matrix lies row by row: what `Columns` gives the columns of."""
    count, lanes = len(columns), columns[0].type.lanes
    if count == 1:
        return list(columns)
    if count == 2:
        both = [lane + at for lane in range(lanes) for at in (0, lanes)]
        return [fb.shuffle(columns[0], columns[1], part) for part in (both[:lanes], both[lanes:])]
    if count % 2 == 0:
        halves = zip(side_by_side(fb, columns[::2]), side_by_side(fb, columns[1::2]), strict=True)
        return [vector for half in halves for vector in side_by_side(fb, half)]
    if count == 3:
        return [_picked_of_three(fb, columns, start) for start in range(0, count * lanes, lanes)]
    turn, vectors = _Turn(count, lanes), dict[int, Value]()
    for number, column in enumerate(columns):
        place, order = turn.column(number)
        vectors[place] = fb.shuffle(column, None, [order.index(lane) for lane in range(lanes)])
    for stage in range(turn.stages):
        step, blend = 1 << stage, turn.blend(stage)
        vectors = {at: fb.shuffle(vectors[at], vectors[(at - step) % count], blend) for at in range(count)}
    return [vectors[place] for place in range(count)]


def _picked_of_three(fb: FunctionBuilder, columns: Sequence[Value], start: int) -> Value:
    """A vector of rows of three, by two shuffles: gathered rows of bytes take 17 us so, and 23 by blends."""
    lanes = columns[0].type.lanes
    places = [divmod(at, 3) for at in range(start, start + lanes)]
    found = fb.shuffle(columns[0], columns[1], [row + lanes * (column == 1) for row, column in places])
    return fb.shuffle(
        found, columns[2], [lanes + row if column == 2 else lane for lane, (row, column) in enumerate(places)]
    )


def load_columns(
    fb: FunctionBuilder, type_: Type, address: Value, count: int, mask: Value | None, metadata: str
) -> Columns:
    """Rows of `count` elements from an address on, one for each lane, or for those of a mask."""
    align, lanes, vectors = type_.scalar.size_bytes, type_.lanes, []
    for number in range(count):
        part = None if mask is None else mask_of_part(fb, mask, count, number)
        if part is not None and lanes_of_mask(part) == ():
            vectors.append(zero(type_))
            continue
        place = fb.gep(type_.scalar, address, number * lanes) if number else address
        if part is None:
            vectors.append(fb.load(type_, place, align, metadata=metadata))
        else:
            vectors.append(fb.masked_load(type_, place, part, zero(type_), align))
    return Columns(fb, vectors)


def load_stretch(fb: FunctionBuilder, type_: Type, address: Value, count: int, metadata: str) -> Columns:
    """As many elements as there are from an address on."""
    align, lanes, vectors = type_.scalar.size_bytes, type_.lanes, []
    for start in range(0, count, lanes):
        place = fb.gep(type_.scalar, address, start) if start else address
        if count - start >= lanes:
            vectors.append(fb.load(type_, place, align, metadata=metadata))
        else:
            vectors.append(fb.masked_load(type_, place, lane_mask(lanes, count - start), zero(type_), align))
    return Columns(fb, vectors)


def load_rows(fb: FunctionBuilder, type_: Type, addresses: Sequence[Value], count: int, metadata: str) -> Columns:
    """Rows of `count` elements that begin at an address each, one for each lane; nothing behind them is read."""
    align, filled = type_.scalar.size_bytes, filled_row(count)
    line, parts = vector(type_.scalar, filled), []
    for address in addresses:
        if count == filled:
            parts.append(fb.load(line, address, align, metadata=metadata))
        else:
            parts.append(fb.masked_load(line, address, lane_mask(filled, count), zero(line), align))
    while parts[0].type.lanes < type_.lanes:
        parts = [fb.concat(a, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return Columns(fb, parts)


def filled_row(count: int) -> int:
    """How many elements a row of `count` has in registers."""
    return 1 << (count - 1).bit_length()


def mask_of_part(fb: FunctionBuilder, mask: Value, count: int, number: int) -> Value:
    """The mask of one of the vectors in which rows of `count` elements lie, out of a mask of the rows."""
    if count == 1:
        return mask
    lanes = mask.type.lanes
    rows, start = lanes_of_mask(mask), number * lanes
    if rows is not None and rows == tuple(range(len(rows))):
        return lane_mask(lanes, len(rows) * count - start)
    return fb.shuffle(mask, None, [place // count for place in range(start, start + lanes)])


def load_apart(fb: FunctionBuilder, type_: Type, address: Value, step: int, metadata: str) -> Value:
    """Elements that lie a step apart, out of as many vectors as the step; the last element ends the last of them."""
    lanes = type_.lanes
    last = (lanes - 1) * step + 1 - lanes
    found: Value | None = None
    for number in range(step):
        start = min(number * lanes, last)
        place = fb.gep(type_.scalar, address, start) if start else address
        loaded = fb.load(type_, place, type_.scalar.size_bytes, metadata=metadata)
        wanted = [lane * step - start for lane in range(lanes)]
        if found is None:
            found = fb.shuffle(loaded, None, [min(position, lanes - 1) for position in wanted])
            continue
        order = [lanes + at if 0 <= at < lanes else lane for lane, at in enumerate(wanted)]
        found = fb.shuffle(found, loaded, order)
    assert found is not None, "a step is at least 1"
    return found


def load_some_apart(fb: FunctionBuilder, type_: Type, address: Value, step: int, known: Sequence[int]) -> Value:
    """Some lanes of `load_apart`, zero in the others; nothing before the first and behind the last is read."""
    lanes, found = type_.lanes, zero(type_)
    begin, end = (known[0] * step, known[-1] * step + 1) if known else (0, 0)
    for start in range(begin, end, lanes):
        mask = lane_mask(lanes, min(lanes, end - start))
        place = fb.gep(type_.scalar, address, start)
        loaded = fb.masked_load(type_, place, mask, zero(type_), type_.scalar.size_bytes)
        places = [lane * step - start if lane in known else -1 for lane in range(lanes)]
        order = [lanes + at if 0 <= at < lanes else lane for lane, at in enumerate(places)]
        found = fb.shuffle(found, loaded, order)
    return found
