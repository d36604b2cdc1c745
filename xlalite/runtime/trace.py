"""What a traced step ran: one record for each operation, feed, and part of a cluster."""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.meaning.host import Array, HostValue
from xlalite.hlo.records import dataclass


@dataclass(frozen=True, slots=True)
class OutputTrace:
    """One output of a node that ran.

    Attributes:
        slot: Its position.
        dtype: Name of the element type.
        dims: Sizes.
        size_bytes: Bytes of its elements.
        address: Where they lie.
    """

    slot: int
    dtype: str
    dims: tuple[int, ...]
    size_bytes: int
    address: int


@dataclass(frozen=True, slots=True)
class NodeTrace:
    """One node that ran; times are nanoseconds since the epoch.

    Attributes:
        name: The operation's name.
        op_type: Its type.
        inputs: Its inputs as labels show them: `name`, or `name:slot` for other outputs than the first.
        start_ns: When it began.
        end_ns: When it was done.
        thread_id: The native thread.
        outputs: What it made.
        device: Where it ran; empty where there is only one device.
        scratch_bytes: Memory that it took and gave back.
    """

    name: str
    op_type: str
    inputs: tuple[str, ...]
    start_ns: int
    end_ns: int
    thread_id: int
    outputs: tuple[OutputTrace, ...] = ()
    device: str = ""
    scratch_bytes: int = 0

    @property
    def label(self) -> str:
        """The node as timelines show it: `name = Type(input, ...)`."""
        return f"{self.name} = {self.op_type}({', '.join(self.inputs)})"


class StepTrace:
    """Collects the records of one step."""

    def __init__(self) -> None:
        self.nodes: list[NodeTrace] = []
        self._device = ""
        # A monotonic clock, moved to the epoch once: durations stay right when the system's clock is set.
        self._offset_ns = time.time_ns() - time.perf_counter_ns()
        self.start_ns = self.now()

    def on(self, device: str) -> StepTrace:
        """The same trace for what runs on one device."""
        its_own = copy.copy(self)
        its_own._device = device
        return its_own

    def now(self) -> int:
        """Nanoseconds since the epoch."""
        return time.perf_counter_ns() + self._offset_ns

    def record(
        self,
        name: str,
        op_type: str,
        inputs: Iterable[str],
        start_ns: int,
        outputs: Sequence[HostValue] = (),
        end_ns: int | None = None,
        scratch_bytes: int = 0,
    ) -> None:
        """Adds a node that ran from `start_ns` to `end_ns`, by default until now."""
        end_ns = self.now() if end_ns is None else end_ns
        described = tuple(
            _describe(slot, value) for slot, value in enumerate(outputs) if hasattr(value, "__array_interface__")
        )
        thread_id = threading.get_native_id()
        self.nodes.append(
            NodeTrace(name, op_type, tuple(inputs), start_ns, end_ns, thread_id, described, self._device, scratch_bytes)
        )

    def record_parts(self, name: str, parts: Iterable[tuple[str, str, float]], start_ns: int) -> None:
        """Adds what ran one after another within a node that began at `start_ns`: name, type, nanoseconds of each."""
        for part, op_type, taken_ns in parts:
            end_ns = start_ns + round(taken_ns)
            # Labels have spaces between their parts only.
            self.record(f"{name}/{part}".replace(" ", "_"), op_type.replace(" ", "_"), (), start_ns, (), end_ns)
            start_ns = end_ns

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """Meanwhile no time passes in this trace."""
        start_ns = time.perf_counter_ns()
        yield
        self._offset_ns -= time.perf_counter_ns() - start_ns


def tensor_label(tensor: Tensor) -> str:
    """A tensor as labels show it: the first output of an operation by the operation's name alone."""
    return tensor.op.name if tensor.index == 0 else tensor.name


def _describe(slot: int, value: object) -> OutputTrace:
    array: Array = value  # type: ignore[assignment]  # the caller looked
    return OutputTrace(
        slot, str(array.dtype), tuple(array.shape), int(array.nbytes), int(array.__array_interface__["data"][0])
    )
