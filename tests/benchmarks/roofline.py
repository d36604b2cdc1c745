"""What this machine can do at most: bytes read and copied, and multiplications with additions, a second.

Measured by loops of LLVM IR on all processors at once; bandwidth for several sizes of data, since caches are faster
than memory.
"""

from __future__ import annotations

import ctypes
import math
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import llvmlite.binding as llvm
import numpy as np

_LANES, _UNROLL = 16, 8
SIZES = (1 << 20, 1 << 22, 1 << 24, 1 << 26, 1 << 28)
"""Bytes of data that bandwidth is measured for."""


@dataclass(frozen=True)
class Bandwidth:
    """Bytes a second for data of a size.

    Attributes:
        size_bytes: How much data.
        read: Bytes read.
        copied: Bytes read and bytes written together.
    """

    size_bytes: int
    read: float
    copied: float


@dataclass(frozen=True)
class Roofline:
    """The machine's limits: bandwidth by size, and f32 operations a second, an addition to a product being two."""

    levels: tuple[Bandwidth, ...]
    flops: float

    def seconds(self, read: int, written: int, flops: int) -> float:
        """The least time in which so much can be done."""
        moved = max(1, read + written)
        level = min(self.levels, key=lambda each: abs(math.log(moved / each.size_bytes)))
        copied = 2 * min(read, written)
        rest = (read - written) / level.read if read > written else (written - read) / level.copied
        return max(copied / level.copied + rest, flops / self.flops)

    def __str__(self) -> str:
        parts = [f"{_size(x.size_bytes)}: read {x.read / 1e9:.0f}, copy {x.copied / 1e9:.0f} GB/s" for x in self.levels]
        return f"{self.flops / 1e9:.0f} GFLOP/s; {'; '.join(parts)}"


def measured(seconds: float = 0.2) -> Roofline:
    """Measures for about so many seconds each figure."""
    threads = os.cpu_count() or 1
    functions, engine = _loops()
    with ThreadPoolExecutor(threads) as pool:

        def rate(amount: float, call: Callable[[int], object]) -> float:
            best, end = 0.0, time.perf_counter() + seconds
            while best == 0 or time.perf_counter() < end:
                start = time.perf_counter()
                list(pool.map(call, range(threads)))
                best = max(best, amount * threads / (time.perf_counter() - start))
            return best

        levels = []
        for size in SIZES:
            part = size // threads // 2
            arrays = [np.ones(part + 64, np.uint8) for _ in range(2 * threads)]
            starts = [-(-array.ctypes.data // 64) * 64 for array in arrays]
            places = list(zip(starts[::2], starts[1::2], strict=True))
            count, repeats = part // (4 * _LANES * _UNROLL), max(1, (1 << 22) // part)
            moved = float(count * repeats * 4 * _LANES * _UNROLL)
            read = rate(2 * moved, lambda i, p=places, c=count, r=repeats: _read_both(functions["read"], *p[i], c, r))
            copied = max(
                rate(2 * moved, lambda i, f=name, p=places, c=count, r=repeats: functions[f](*p[i], c, r))
                for name in ("copy", "stream")
            )
            levels.append(Bandwidth(size, read, copied))
        steps = 1_000_000
        flops = rate(2.0 * steps * _LANES * _UNROLL, lambda i: functions["fma"](*places[i], steps, 1))
    engine.close()
    return Roofline(tuple(levels), flops)


def _read_both(read: Callable[..., object], first: int, second: int, count: int, repeats: int) -> None:
    """Reads as much as a copy touches, so that both are measured with the data in the same caches."""
    read(first, second, count, repeats)
    read(second, first, count, repeats)


def _loops() -> tuple[dict[str, Callable[..., object]], llvm.ExecutionEngine]:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly("\n".join((_DECLARATIONS, *(_loop(name) for name in _STEPS))))
    features = llvm.get_host_cpu_features().flatten()
    target = llvm.Target.from_default_triple()
    machine = target.create_target_machine(cpu=llvm.get_host_cpu_name(), features=features, opt=3)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    return {name: kind(engine.get_function_address(name)) for name in _STEPS}, engine


_VECTOR = f"<{_LANES} x float>"
_FMA = f"{_VECTOR} @llvm.fma.v{_LANES}f32"
_DECLARATIONS = f"declare {_FMA}({_VECTOR}, {_VECTOR}, {_VECTOR})\n!0 = !{{i32 1}}"
_LOAD = (
    f"  %p{{k}} = getelementptr {_VECTOR}, ptr %source, i64 %at{{k}}\n"
    f"  %x{{k}} = load {_VECTOR}, ptr %p{{k}}, align 4\n"
)
_STORE = (
    f"  %q{{k}} = getelementptr {_VECTOR}, ptr %target, i64 %at{{k}}\n"
    f"  store {_VECTOR} %x{{k}}, ptr %q{{k}}, align {{align}}\n  %n{{k}} = fadd {_VECTOR} %s{{k}}, zeroinitializer\n"
)
_STEPS = {
    "read": _LOAD + f"  %n{{k}} = fadd {_VECTOR} %s{{k}}, %x{{k}}\n",
    "copy": _LOAD + _STORE.replace("{align}", "4"),
    "stream": _LOAD + _STORE.replace("{align}", f"{4 * _LANES}, !nontemporal !0"),
    "fma": f"  %n{{k}} = call {_FMA}({_VECTOR} %s{{k}}, {_VECTOR} %first, {_VECTOR} %first)\n",
}
"""What a step does with the vector `%at` a place and the running value `%s`, whose next value is `%n`."""


def _loop(name: str) -> str:
    """A function of source, target, steps and repetitions, which keeps what it computed."""
    each = range(_UNROLL)
    running = "\n".join(f"  %s{k} = phi {_VECTOR} [ %first, %outer ], [ %n{k}, %inner ]" for k in each)
    places = "\n".join(f"  %at{k} = add i64 %base, {k}" for k in each)
    steps = "".join(_STEPS[name].format(k=k) for k in each)
    sums = "\n".join(f"  %t{k + 1} = fadd {_VECTOR} %t{k}, %n{k}" for k in each)
    return f"""
define void @{name}(ptr %source, ptr %target, i64 %steps, i64 %repeats) {{
entry:
  %first = load {_VECTOR}, ptr %target, align 4
  br label %outer
outer:
  %repeat = phi i64 [ 0, %entry ], [ %repeat_next, %after ]
  br label %inner
inner:
  %i = phi i64 [ 0, %outer ], [ %i_next, %inner ]
{running}
  %base = mul i64 %i, {_UNROLL}
{places}
{steps}
  %i_next = add i64 %i, 1
  %more = icmp slt i64 %i_next, %steps
  br i1 %more, label %inner, label %after
after:
  %t0 = fadd {_VECTOR} %first, %first
{sums}
  store volatile {_VECTOR} %t{_UNROLL}, ptr %target, align 4
  %repeat_next = add i64 %repeat, 1
  %again = icmp slt i64 %repeat_next, %repeats
  br i1 %again, label %outer, label %end
end:
  ret void
}}"""


def _size(size: int) -> str:
    return f"{size >> 20} MiB"
