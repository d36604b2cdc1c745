"""The trace of a step as the messages that timelines read."""

from __future__ import annotations

from xlalite.client.step_stats import (
    AllocationDescription,
    AllocatorMemoryUsed,
    DeviceStepStats,
    NodeExecStats,
    NodeOutput,
    StepStats,
    TensorDescription,
    TensorShapeDim,
    TensorShapeProto,
)
from xlalite.runtime.trace import NodeTrace, OutputTrace, StepTrace

CPU_DEVICE = "/job:localhost/replica:0/task:0/device:CPU:0"


def step_stats(trace: StepTrace) -> StepStats:
    """The statistics of a step."""
    devices: dict[str, list[NodeExecStats]] = {}
    for node in trace.nodes:
        devices.setdefault(node.device or CPU_DEVICE, []).append(_node(node, trace.start_ns))
    stats = [DeviceStepStats(device=device, node_stats=nodes) for device, nodes in sorted(devices.items())]
    return StepStats(dev_stats=stats or [DeviceStepStats(device=CPU_DEVICE)])


def _node(node: NodeTrace, step_start_ns: int) -> NodeExecStats:
    duration = node.end_ns - node.start_ns
    return NodeExecStats(
        node_name=node.name,
        all_start_micros=node.start_ns // 1000,
        op_end_rel_micros=duration // 1000,
        all_end_rel_micros=duration // 1000,
        memory=_scratch(node.scratch_bytes),
        output=[_output(output) for output in node.outputs],
        timeline_label=node.label,
        scheduled_micros=step_start_ns // 1000,
        thread_id=node.thread_id,
        all_start_nanos=node.start_ns,
        op_end_rel_nanos=duration,
        all_end_rel_nanos=duration,
        scheduled_nanos=step_start_ns,
    )


def _scratch(size_bytes: int) -> list[AllocatorMemoryUsed]:
    if not size_bytes:
        return []
    return [AllocatorMemoryUsed(allocator_name="cpu", total_bytes=size_bytes, peak_bytes=size_bytes)]


def _output(output: OutputTrace) -> NodeOutput:
    allocation = AllocationDescription(
        requested_bytes=output.size_bytes,
        allocated_bytes=output.size_bytes,
        allocator_name="cpu",
        allocation_id=output.address,
        ptr=output.address,
    )
    shape = TensorShapeProto(dim=[TensorShapeDim(size=size) for size in output.dims])
    return NodeOutput(
        slot=output.slot,
        tensor_description=TensorDescription(dtype=output.dtype, shape=shape, allocation_description=allocation),
    )
