"""Where the time of calls goes, kernel by kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from xlalite.hlo.record_tables import RecordTable
from xlalite.hlo.records import dataclass


@dataclass(frozen=True, slots=True)
class KernelTime:
    """The calls of one kernel.

    Attributes:
        name: The instruction, or the first of several that run side by side.
        kind: The kind of kernel.
        calls: How often it ran to its end.
        time_ns: How long all of that took.
        flops: Arithmetic operations of all calls, transcendental functions not among them.
        bytes_accessed: Bytes of the operands and results of all calls.
        dtype: The element type of its largest array; of a product, that of its operands.
        threads: How many at most ran each call.
    """

    name: str
    kind: str
    calls: int
    time_ns: int
    flops: int
    bytes_accessed: int
    dtype: str = "f32"
    threads: int = 1

    def less(self, earlier: KernelTime) -> KernelTime:
        """The same without the calls of an earlier record."""
        return replace(
            self,
            calls=self.calls - earlier.calls,
            time_ns=self.time_ns - earlier.time_ns,
            flops=self.flops - earlier.flops,
            bytes_accessed=self.bytes_accessed - earlier.bytes_accessed,
        )

    @property
    def gflops(self) -> float:
        """Billions of arithmetic operations a second."""
        return self.flops / self.time_ns if self.time_ns else 0.0

    @property
    def gbytes(self) -> float:
        """Billions of bytes a second."""
        return self.bytes_accessed / self.time_ns if self.time_ns else 0.0


@dataclass(frozen=True, slots=True)
class KernelProfile:
    """What was measured in the calls of one executable.

    Attributes:
        total: Whole calls: the kernels, and what the entry does between them.
        kernels: The kernels, in the order of the code.
    """

    total: KernelTime
    kernels: tuple[KernelTime, ...]

    @staticmethod
    def of(clocked: Sequence[tuple[str, str, int, int, str, int]], counters: Sequence[Sequence[int]]) -> KernelProfile:
        """The profile from what has counters and what they hold, calls and nanoseconds, the whole call first."""
        rows = [
            KernelTime(name, kind, calls, time_ns, flops * calls, size * calls, dtype, threads)
            for (name, kind, flops, size, dtype, threads), (calls, time_ns) in zip(clocked, counters, strict=True)
        ]
        return KernelProfile(rows[0], tuple(rows[1:])).with_total()

    def since(self, earlier: KernelProfile | None) -> KernelProfile:
        """What came after an earlier profile of the same code; all of it after none."""
        if earlier is None:
            return self
        pairs = zip((self.total, *self.kernels), (earlier.total, *earlier.kernels), strict=True)
        total, *kernels = (now.less(before) for now, before in pairs)
        return KernelProfile(total, tuple(kernels))

    def with_total(self) -> KernelProfile:
        """The same, with the operations, bytes, threads and, if there is one, type of the kernels for the whole."""
        total = replace(
            self.total,
            flops=sum(one.flops for one in self.kernels),
            bytes_accessed=sum(one.bytes_accessed for one in self.kernels),
            threads=max((one.threads for one in self.kernels), default=1),
            dtype=next(iter(self.dtypes)) if len(self.dtypes) == 1 else self.total.dtype,
        )
        return KernelProfile(total, self.kernels)

    @property
    def dtypes(self) -> frozenset[str]:
        """Element types of the kernels that compute something."""
        return frozenset(one.dtype for one in self.kernels if one.flops)

    def report(self, share_of_roof: Callable[[KernelTime], float] | None = None) -> str:
        """A table, the longest first; with the part of the possible speed that each comes to, if that is known."""
        rows = sorted((one for one in self.kernels if one.calls), key=lambda one: -one.time_ns)
        rest = self.total.time_ns - sum(one.time_ns for one in rows)
        shown = [*rows, KernelTime("(between kernels)", "", self.total.calls, rest, 0, 0), self.total]
        width, kinds = (
            max(map(len, (title, *texts)))
            for title, texts in (("kernel", [one.name for one in shown]), ("kind", [one.kind for one in shown]))
        )
        lines = [
            f"{'kernel':{width}}  {'kind':{kinds}}  {'calls':>7} {'threads':>7} {'ms':>10} {'share':>6} {'GB/s':>7} "
            f"{'GFLOP/s':>8}{'   roof' if share_of_roof else ''}"
        ]
        for one in shown:
            share = one.time_ns / self.total.time_ns if self.total.time_ns else 0.0
            roof = f" {share_of_roof(one):6.1%}" if share_of_roof and one.flops + one.bytes_accessed else ""
            lines.append(
                f"{one.name:{width}}  {one.kind:{kinds}}  {one.calls:7} {one.threads:7} {one.time_ns / 1e6:10.4f} "
                f"{share:6.1%} {one.gbytes:7.2f} {one.gflops:8.2f}{roof}"
            )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """The table as notebooks show it."""
        return RecordTable((*self.kernels, self.total))._repr_html_()

    def __str__(self) -> str:
        """The table."""
        return self.report()
