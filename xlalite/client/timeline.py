"""Step statistics as a trace that Perfetto and chrome://tracing open.

The trace has two processes for each device: one whose lanes show what was computed when, one whose lanes show how long
the results lived. Arrows lead from the operation that made a value to those that read it. Times count from the start of
the step, because a double holds microseconds since the epoch to a quarter of a microsecond only, and operations of a
compiled step are shorter than that.
"""

import heapq
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import field

from xlalite.client.step_stats import DeviceStepStats, NodeExecStats, NodeOutput, StepStats
from xlalite.hlo.records import dataclass

Event = dict[str, object]

# `name = Op(input, ...)`, perhaps after a note on memory.
_LABEL = re.compile(r"(?P<name>[^\s=]+) = (?P<op>[^\s(]+)\((?P<inputs>.*)\)\s*$", re.DOTALL)
# `name = _Send(tensor @device`: what moves between devices names the tensor.
_TRANSFER = re.compile(r"(?P<name>[^\s=]+) = (?P<op>[^\s(]+)\((?P<inputs>[^\s)]+) @(?P<device>[^)]*)\)?\s*$")


class Timeline:
    """A view of the statistics of one step."""

    def __init__(self, step_stats: StepStats) -> None:
        """Keeps the statistics; nothing is computed before a trace is asked for."""
        self._step_stats = step_stats

    def generate_chrome_trace_format(self, show_dataflow: bool = True, show_memory: bool = False) -> str:
        """The step as JSON in Chrome's trace event format.

        Args:
            show_dataflow: Adds an arrow from every result to each operation that reads it.
            show_memory: Adds the life of every result and a counter of the bytes in use for each allocator.
        """
        origin = _start_of_step(self._step_stats)
        runs = list(_runs(self._step_stats, origin))
        events = [*_process_names(self._step_stats), *_thread_names(runs), *(_compute_event(run) for run in runs)]
        results = list(_results(runs))
        if show_dataflow:
            events += _arrows(results)
        if show_memory:
            events += [*_tensor_lives(results), *_memory_counters(results)]
        start = {"step_start_nanos_since_epoch": origin}
        return json.dumps({"traceEvents": events, "displayTimeUnit": "ns", "otherData": start}, indent=1)


@dataclass(frozen=True, slots=True)
class _Run:
    """One operation that ran, placed in a lane of its device; times in microseconds since the start of the step."""

    stats: NodeExecStats
    name: str
    op: str
    inputs: tuple[str, ...]
    compute_pid: int
    tensors_pid: int
    lane: int
    lane_name: str
    start: float
    end: float


@dataclass(slots=True)
class _Result:
    """One output of a run, its name as a reader spells it, and the runs that read it."""

    name: str
    producer: _Run
    output: NodeOutput
    number: int
    readers: list[_Run] = field(default_factory=list)

    @property
    def last_use(self) -> float:
        """When the last reader was over, or the producer if nobody reads."""
        return max((run.end for run in self.readers), default=self.producer.end)


def _pids(device_number: int) -> tuple[int, int]:
    """The processes of a device: compute, tensors."""
    return 2 * device_number + 1, 2 * device_number + 2


def _start_of_step(step_stats: StepStats) -> int:
    starts = (_span(stats)[0] for device in step_stats.dev_stats for stats in device.node_stats)
    return min(starts, default=0)


def _span(stats: NodeExecStats) -> tuple[int, int]:
    """Begin and end in nanoseconds since the epoch, from the exact fields where they are filled."""
    start = stats.all_start_nanos or 1000 * stats.all_start_micros
    return start, start + (stats.all_end_rel_nanos or 1000 * stats.all_end_rel_micros)


def _runs(step_stats: StepStats, origin: int) -> Iterator[_Run]:
    for number, device in enumerate(step_stats.dev_stats):
        for stats, lane, lane_name in _placed_in_lanes(device):
            name, op, inputs = _parsed_label(stats)
            start, end = ((time - origin) / 1000 for time in _span(stats))
            yield _Run(stats, name, op, inputs, *_pids(number), lane, lane_name, start, end)


def _placed_in_lanes(device: DeviceStepStats) -> Iterator[tuple[NodeExecStats, int, str]]:
    """Each run with its lane: its thread where threads are named, else the first lane that is free by then.

    What ran within another run of its thread, as a kernel within a program, is in the lane of that one.
    """
    in_time = sorted(device.node_stats, key=lambda stats: (_span(stats)[0], -_span(stats)[1]))
    if device.thread_names:
        for stats in in_time:
            yield stats, stats.thread_id, device.thread_names.get(stats.thread_id, f"thread {stats.thread_id}")
        return
    free: list[int] = []
    busy: list[tuple[int, int]] = []
    outer: dict[int, tuple[int, int, int]] = {}
    for stats in in_time:
        start, end = _span(stats)
        outer_start, outer_end, outer_lane = outer.get(stats.thread_id, (end, start, 0))
        if stats.thread_id and outer_start <= start and end <= outer_end and outer_start < outer_end:
            yield stats, outer_lane, f"lane {outer_lane}"
            continue
        while busy and busy[0][0] <= start:
            heapq.heappush(free, heapq.heappop(busy)[1])
        lane = heapq.heappop(free) if free else len(busy)
        heapq.heappush(busy, (end, lane))
        outer[stats.thread_id] = start, end, lane
        yield stats, lane, f"lane {lane}"


def _parsed_label(stats: NodeExecStats) -> tuple[str, str, tuple[str, ...]]:
    """Name, op type and inputs out of the label; the bare name where the label has another form."""
    label = stats.timeline_label
    match = _TRANSFER.search(label) or _LABEL.search(label)
    if match is None:
        return stats.node_name, label or stats.node_name, ()
    inputs = tuple(text for part in match["inputs"].split(",") if (text := part.strip()))
    return match["name"], match["op"], inputs


def _process_names(step_stats: StepStats) -> Iterator[Event]:
    for number, device in enumerate(step_stats.dev_stats):
        for pid, part in zip(_pids(number), ("Compute", "Tensors"), strict=True):
            yield {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": f"{device.device} {part}"}}


def _thread_names(runs: Iterable[_Run]) -> Iterator[Event]:
    lanes = {(run.compute_pid, run.lane): run.lane_name for run in runs}
    for (pid, lane), name in sorted(lanes.items()):
        yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": lane, "args": {"name": name}}


def _compute_event(run: _Run) -> Event:
    arguments: dict[str, object] = {"name": run.name, "op": run.op}
    arguments |= {f"input{number}": name for number, name in enumerate(run.inputs)}
    return {
        "ph": "X", "cat": "Op", "name": run.op, "pid": run.compute_pid, "tid": run.lane,
        "ts": run.start, "dur": run.end - run.start, "args": arguments,
    }  # fmt: skip


def _results(runs: list[_Run]) -> Iterator[_Result]:
    """Every output with its readers; a reader names output 0 by the operation alone, output n as `operation:n`."""
    results: dict[str, _Result] = {}
    for run in runs:
        for output in run.stats.output:
            name = run.name if output.slot == 0 else f"{run.name}:{output.slot}"
            results[name] = _Result(name, run, output, len(results))
    for run in runs:
        for name in dict.fromkeys(run.inputs):
            if result := results.get(name.removesuffix(":0")):
                result.readers.append(run)
    yield from results.values()


def _arrows(results: Iterable[_Result]) -> Iterator[Event]:
    number = 0
    for result in results:
        for reader in result.readers:
            common: Event = {"cat": "DataFlow", "name": result.name, "id": number}
            number += 1
            producer = result.producer
            leaves = min((producer.start + producer.end) / 2, reader.start)  # inside the slice that it belongs to
            yield {"ph": "s", **common, "pid": producer.compute_pid, "tid": producer.lane, "ts": leaves}
            yield {"ph": "t", **common, "pid": reader.compute_pid, "tid": reader.lane, "ts": reader.start}


def _tensor_lives(results: Iterable[_Result]) -> Iterator[Event]:
    for result in results:
        common: Event = {
            "cat": "Tensor", "name": result.name, "id": result.number, "pid": result.producer.tensors_pid, "tid": 0
        }  # fmt: skip
        snapshot = {"tensor_description": repr(result.output.tensor_description)}
        yield {"ph": "N", **common, "ts": result.producer.start}
        yield {"ph": "O", **common, "ts": result.producer.end, "args": {"snapshot": snapshot}}
        yield {"ph": "D", **common, "ts": result.last_use}


def _memory_counters(results: Iterable[_Result]) -> Iterator[Event]:
    """The bytes of live results over time; an allocation counts once however many results share it."""
    changes: dict[tuple[int, str], list[tuple[float, int]]] = {}
    for (pid, allocator, _), shared in _allocations(results).items():
        size = max(_allocated_bytes(result) for result in shared)
        at = changes.setdefault((pid, allocator), [])
        at.append((min(result.producer.start for result in shared), size))
        at.append((max(result.last_use for result in shared), -size))
    for (pid, allocator), steps in changes.items():
        in_use = 0
        levels: dict[float, int] = {}
        for time, change in sorted(steps):
            in_use += change
            levels[time] = in_use
        for time, level in levels.items():
            yield {"ph": "C", "cat": "Memory", "name": allocator, "pid": pid, "ts": time, "args": {allocator: level}}


def _allocations(results: Iterable[_Result]) -> dict[tuple[int, str, int], list[_Result]]:
    """The results of each allocation: by process, allocator, and the allocation's number or the result's own."""
    grouped: dict[tuple[int, str, int], list[_Result]] = {}
    for result in results:
        if not _allocated_bytes(result):
            continue
        description = result.output.tensor_description.allocation_description
        identity = description.allocation_id or -1 - result.number
        key = result.producer.tensors_pid, description.allocator_name or "memory", identity
        grouped.setdefault(key, []).append(result)
    return grouped


def _allocated_bytes(result: _Result) -> int:
    description = result.output.tensor_description.allocation_description
    return description.allocated_bytes or description.requested_bytes
