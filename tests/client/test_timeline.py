"""Traces of steps in Chrome's format."""

import json

import pytest

from xlalite.client.step_stats import DeviceStepStats, StepStats
from xlalite.client.timeline import Timeline

Events = list[dict]


def add_run(device: DeviceStepStats, label: str, start: int, length: int, bytes_out: int = 0, **fields: object) -> None:
    stats = device.node_stats.add(node_name=label.split(" ")[0], timeline_label=label, **fields)
    stats.all_start_micros = start
    stats.all_end_rel_micros = length
    output = stats.output.add(slot=0)
    if bytes_out:
        description = output.tensor_description.allocation_description
        description.allocated_bytes = bytes_out
        description.allocator_name = "cpu"


@pytest.fixture
def two_chains() -> StepStats:
    """a -> c and b -> c, where a and b overlap in time; 1000 is the start of the step."""
    stats = StepStats()
    device = stats.dev_stats.add(device="/device:CPU:0")
    add_run(device, "a = Const()", 1000, 10, 64)
    add_run(device, "b = Const()", 1005, 10, 32)
    add_run(device, "c = MatMul(a, b)", 1020, 5)
    return stats


def events_of(stats: StepStats, **options: bool) -> Events:
    return json.loads(Timeline(step_stats=stats).generate_chrome_trace_format(**options))["traceEvents"]


def with_phase(events: Events, phase: str) -> Events:
    return [event for event in events if event["ph"] == phase]


def test_each_operation_is_a_complete_event_with_its_inputs(two_chains: StepStats) -> None:
    event = with_phase(events_of(two_chains), "X")[-1]
    assert event["name"] == "MatMul"
    assert event["args"] == {"name": "c", "op": "MatMul", "input0": "a", "input1": "b"}
    assert (event["ts"], event["dur"]) == (20, 5)


def test_start_of_the_step_is_kept(two_chains: StepStats) -> None:
    trace = json.loads(Timeline(two_chains).generate_chrome_trace_format())
    assert trace["otherData"] == {"step_start_nanos_since_epoch": 1_000_000}


def test_overlapping_operations_are_in_different_lanes(two_chains: StepStats) -> None:
    lanes = [event["tid"] for event in with_phase(events_of(two_chains), "X")]
    assert lanes == [0, 1, 0]


def test_named_threads_are_the_lanes(two_chains: StepStats) -> None:
    device = two_chains.dev_stats[0]
    device.thread_names[7] = "worker"
    for stats in device.node_stats:
        stats.thread_id = 7
    events = events_of(two_chains)
    assert {event["tid"] for event in with_phase(events, "X")} == {7}
    (name,) = (event for event in events if event["name"] == "thread_name")
    assert name["args"] == {"name": "worker"}


def test_each_device_has_two_processes(two_chains: StepStats) -> None:
    two_chains.dev_stats.add(device="/device:CPU:1")
    names = [event for event in events_of(two_chains) if event["name"] == "process_name"]
    assert [(event["pid"], event["args"]["name"]) for event in names] == [
        (1, "/device:CPU:0 Compute"), (2, "/device:CPU:0 Tensors"),
        (3, "/device:CPU:1 Compute"), (4, "/device:CPU:1 Tensors"),
    ]  # fmt: skip


def test_arrows_join_producers_and_readers_inside_their_slices(two_chains: StepStats) -> None:
    events = events_of(two_chains)
    starts, ends = with_phase(events, "s"), with_phase(events, "t")
    assert [event["name"] for event in starts] == ["a", "b"]
    assert [event["id"] for event in starts] == [event["id"] for event in ends] == [0, 1]
    slices = with_phase(events, "X")
    for arrow, source in zip(starts, slices[:2], strict=True):
        assert source["ts"] <= arrow["ts"] <= source["ts"] + source["dur"]
        assert arrow["tid"] == source["tid"]
    assert {event["ts"] for event in ends} == {slices[2]["ts"]}


def test_arrows_are_left_out_when_not_wanted(two_chains: StepStats) -> None:
    events = events_of(two_chains, show_dataflow=False)
    assert {event["ph"] for event in events} == {"M", "X"}


def test_second_output_is_found_by_its_slot() -> None:
    stats = StepStats()
    device = stats.dev_stats.add(device="cpu")
    add_run(device, "loss = Xent(x, y)", 0, 4)
    device.node_stats[0].output.add(slot=1)
    add_run(device, "grad = Mul(g, loss:1)", 5, 2)
    (arrow,) = with_phase(events_of(stats), "s")
    assert arrow["name"] == "loss:1"


def test_memory_is_counted_until_the_last_reader_is_over(two_chains: StepStats) -> None:
    counters = with_phase(events_of(two_chains, show_memory=True), "C")
    assert [(event["ts"], event["args"]["cpu"]) for event in counters] == [(0, 64), (5, 96), (25, 0)]


def test_memory_of_shared_allocations_is_counted_once(two_chains: StepStats) -> None:
    for stats in list(two_chains.dev_stats[0].node_stats)[:2]:
        stats.output[0].tensor_description.allocation_description.allocation_id = 5
    counters = with_phase(events_of(two_chains, show_memory=True), "C")
    assert max(event["args"]["cpu"] for event in counters) == 64


def test_life_of_results_is_shown_with_memory(two_chains: StepStats) -> None:
    events = events_of(two_chains, show_memory=True)
    assert [event["name"] for event in with_phase(events, "N")] == ["a", "b", "c"]
    assert [event["ts"] for event in with_phase(events, "D")] == [25, 25, 25]
    assert not with_phase(events_of(two_chains), "N")


def test_nanoseconds_are_used_where_they_are_known() -> None:
    stats = StepStats()
    device = stats.dev_stats.add(device="cpu")
    epoch = 1_700_000_000_000_000_000
    add_run(device, "a = Const()", epoch // 1000, 0, all_start_nanos=epoch, all_end_rel_nanos=300)
    add_run(device, "b = Neg(a)", epoch // 1000, 0, all_start_nanos=epoch + 400, all_end_rel_nanos=100)
    assert [(event["ts"], event["dur"]) for event in with_phase(events_of(stats), "X")] == [
        (0, pytest.approx(0.3)), (pytest.approx(0.4), pytest.approx(0.1)),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("label", "arguments"),
    [
        ("_SOURCE", {"name": "_SOURCE", "op": "_SOURCE"}),
        ("", {"name": "node", "op": "node"}),
        ("edge_1_x = _Send(x @/cpu:0", {"name": "edge_1_x", "op": "_Send", "input0": "x"}),
        ("[Host 4KB] a/b = _XlaRun(x, key:0)", {"name": "a/b", "op": "_XlaRun", "input0": "x", "input1": "key:0"}),
    ],
)  # fmt: skip
def test_label_of_any_form_is_accepted(label: str, arguments: dict[str, str]) -> None:
    stats = StepStats()
    name = "node" if not label else label.split(" ")[0]
    stats.dev_stats.add(device="cpu").node_stats.add(node_name=name, timeline_label=label)
    (event,) = with_phase(events_of(stats), "X")
    assert event["args"] == arguments


def test_empty_statistics_make_an_empty_trace() -> None:
    assert events_of(StepStats()) == []
