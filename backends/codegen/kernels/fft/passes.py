"""Transforms of many lines at once, a line in each lane, in buffers of their own.

A buffer holds element after element, the real parts of all lanes and then the imaginary ones. A pass of radix r reads
n / r elements apart and writes where the next pass wants them (Stockham's order), so nothing is permuted. A pass is one
function for all lines of a module, whatever their length.
"""

from __future__ import annotations

from xlalite.backends.codegen.kernels.fft.butterflies import Complex, butterfly, multiply
from xlalite.backends.codegen.kernels.fft.plan import LinePlan
from xlalite.backends.codegen.kernels.fft.twiddles import chirp, pass_table
from xlalite.backends.codegen.llvm import I64, PTR, VOID, Function, FunctionBuilder, Operand, Type, Value, vector
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType


@dataclass(frozen=True, slots=True)
class Lanes:
    """How lines lie in lanes.

    Attributes:
        dtype: Type of real and imaginary parts.
        scalar: The same in registers.
        count: Lines at once.
    """

    dtype: DType
    scalar: Type
    count: int

    @property
    def wide(self) -> Type:
        """A register of real or of imaginary parts."""
        return vector(self.scalar, self.count)

    def element_bytes(self) -> int:
        """Bytes of one element of all lines."""
        return 2 * self.count * self.scalar.size_bytes

    def at(self, fb: FunctionBuilder, buffer: Value, element: Value | int) -> Value:
        """Where an element lies."""
        return fb.gep(self.wide, buffer, fb.mul(element, 2) if isinstance(element, Value) else 2 * element)

    def load(self, fb: FunctionBuilder, buffer: Value, element: Value | int) -> Complex:
        """An element of all lines."""
        return self.read(fb, self.at(fb, buffer, element))

    def store(self, fb: FunctionBuilder, buffer: Value, element: Value | int, value: Complex) -> None:
        """Writes an element of all lines."""
        self.write(fb, self.at(fb, buffer, element), value)

    def read(self, fb: FunctionBuilder, place: Value) -> Complex:
        """The element at an address."""
        return fb.load(self.wide, place), fb.load(self.wide, fb.gep(self.wide, place, 1))

    def write(self, fb: FunctionBuilder, place: Value, value: Complex) -> None:
        """Writes the element at an address."""
        fb.store(value[0], place)
        fb.store(value[1], fb.gep(self.wide, place, 1))

    def spread(self, fb: FunctionBuilder, buffer: Value, element: Value, step: Value, count: int) -> list[Value]:
        """Where elements lie that are a step apart."""
        places, reach = [self.at(fb, buffer, element)], fb.mul(step, 2)
        for _ in range(count - 1):
            places.append(fb.gep(self.wide, places[-1], reach))
        return places

    def factor(self, fb: FunctionBuilder, table: Value, number: Value | int) -> Complex:
        """An entry of a table of complex numbers, the same for all lines."""
        place = fb.gep(self.scalar, table, fb.mul(number, 2) if isinstance(number, Value) else 2 * number)
        parts = (fb.load(self.scalar, place), fb.load(self.scalar, fb.gep(self.scalar, place, 1)))
        return fb.splat(parts[0], self.count), fb.splat(parts[1], self.count)


def transform_lines(
    fb: FunctionBuilder, lanes: Lanes, plan: LinePlan, buffers: tuple[Value, Value], source: Value, apart: Operand = 1
) -> Value:
    """Transforms lines; which of two buffers holds them then.

    Args:
        fb: Where code goes.
        lanes: How lines lie in lanes.
        plan: What to do.
        buffers: Memory for `plan.size` elements each, which is written.
        source: The lines; the first buffer, or memory beside both that is left as it is.
        apart: How many elements neighbours of a line in the source are apart.
    """
    if not plan.is_convolution:
        return _passes(fb, lanes, plan, buffers, source, apart)
    line_table, kernel_table = (fb.module.constant_bytes(data) for data in chirp(plan, lanes.dtype))

    def turned(target: Value, origin: Value, table: Value, count: int, swaps: bool, step: Operand = 1) -> None:
        with fb.loop(0, count) as number:
            at = number if step == 1 else fb.mul(number, step)
            real, imaginary = lanes.load(fb, origin, at)
            # The inverse of a transform is the transform with real and imaginary parts exchanged before and after.
            found = multiply(fb, (imaginary, real) if swaps else (real, imaginary), lanes.factor(fb, table, number))
            lanes.store(fb, target, number, found)

    start = buffers[0]
    turned(start, source, line_table, plan.length, False, apart)
    zero = fb.constant(lanes.wide, 0.0)
    with fb.loop(plan.length, plan.size) as number:
        lanes.store(fb, start, number, (zero, zero))
    once = _passes(fb, lanes, plan, buffers, start, 1)
    with fb.loop(0, plan.size) as number:
        real, imaginary = multiply(fb, lanes.load(fb, once, number), lanes.factor(fb, kernel_table, number))
        lanes.store(fb, once, number, (imaginary, real))
    back = buffers if once is buffers[0] else (buffers[1], buffers[0])
    twice = _passes(fb, lanes, plan, back, once, 1)
    turned(twice, twice, line_table, plan.length, True)
    return twice


def _passes(
    fb: FunctionBuilder, lanes: Lanes, plan: LinePlan, buffers: tuple[Value, Value], source: Value, apart: Operand
) -> Value:
    groups, done = plan.size, 1
    if not plan.radices:
        lanes.store(fb, buffers[0], 0, lanes.load(fb, source, 0))
        return buffers[0]
    for radix in plan.radices:
        groups //= radix
        target = buffers[1] if source is buffers[0] else buffers[0]
        table = fb.module.constant_bytes(pass_table(radix, groups, lanes.dtype))
        function = _pass(fb, lanes, radix, groups > 1)
        fb.call(function, target, source, apart, groups, done, table)
        source, apart, done = target, 1, done * radix
    return source


def _pass(fb: FunctionBuilder, lanes: Lanes, radix: int, is_turned: bool) -> Function:
    """The function `void(target, source, apart, groups, done, table)` of one pass."""

    def build(inner: FunctionBuilder) -> None:
        inner.is_as_written = True
        target, source, apart, groups, done, table = inner.parameters
        distance = inner.mul(inner.mul(groups, done), apart)
        with inner.loop(0, groups, nonempty=True) as group:
            factors = (
                [
                    lanes.factor(inner, table, inner.add(inner.mul(group, radix - 1), number))
                    for number in range(radix - 1)
                ]
                if is_turned
                else []
            )
            first = inner.mul(group, done)
            to = inner.mul(first, radix)
            with inner.loop(0, done, nonempty=True) as one:
                at = inner.mul(inner.add(first, one), apart)
                elements = [lanes.read(inner, place) for place in lanes.spread(inner, source, at, distance, radix)]
                results = butterfly(inner, elements)
                places = lanes.spread(inner, target, inner.add(to, one), done, radix)
                for number, (place, result) in enumerate(zip(places, results, strict=True)):
                    if number and is_turned:
                        result = multiply(inner, result, factors[number - 1])
                    lanes.write(inner, place, result)
        inner.ret()

    return fb.module.shared_function(
        ("fft pass", radix, lanes.wide, is_turned),
        f"fft_pass_{radix}",
        VOID,
        (PTR, PTR, I64, I64, I64, PTR),
        ("noalias", "noalias readonly", "", "", "", "noalias readonly"),
        build,
    )
