"""What a traced step ran, operation by operation, under TensorFlow's names. Times are in microseconds."""

from xlalite.messages.setting_values import Boolean, Integer, Text
from xlalite.messages.settings import Nested, Settings, Single, mapping, repeated_settings


class AllocationDescription(Settings):
    """The memory behind one tensor.

    Attributes:
        requested_bytes: The size of the tensor's elements.
        allocated_bytes: The size of the block that holds them.
        allocator_name: The allocator; the memory counters of a timeline are grouped by it.
        allocation_id: Equal for tensors that share a block.
        has_single_reference: Whether nothing else refers to the block.
        ptr: The block's address.
    """

    __slots__ = ()
    requested_bytes = Single(Integer(64))
    allocated_bytes = Single(Integer(64))
    allocator_name = Single(Text())
    allocation_id = Single(Integer(64))
    has_single_reference = Single(Boolean())
    ptr = Single(Integer(64, signed=False))


class TensorShapeDim(Settings):
    """One dimension of a shape; -1 is unknown."""

    __slots__ = ()
    size = Single(Integer(64))
    name = Single(Text())


class TensorShapeProto(Settings):
    """The shape of a tensor."""

    __slots__ = ()
    dim = repeated_settings(TensorShapeDim)
    unknown_rank = Single(Boolean())


class TensorDescription(Settings):
    """A tensor without its values; `dtype` is a name such as `float32`."""

    __slots__ = ()
    dtype = Single(Text())
    shape = Nested(TensorShapeProto)
    allocation_description = Nested(AllocationDescription)


class NodeOutput(Settings):
    """One output of an operation that ran."""

    __slots__ = ()
    slot = Single(Integer())
    tensor_description = Nested(TensorDescription)


class AllocatorMemoryUsed(Settings):
    """What an operation took from one allocator while it ran."""

    __slots__ = ()
    allocator_name = Single(Text())
    total_bytes = Single(Integer(64))
    peak_bytes = Single(Integer(64))
    live_bytes = Single(Integer(64))
    allocator_bytes_in_use = Single(Integer(64))


class NodeExecStats(Settings):
    """One operation that ran.

    Attributes:
        node_name: The operation's name.
        all_start_micros: When the executor took it up, since the epoch.
        op_start_rel_micros: When its computation began, since `all_start_micros`.
        op_end_rel_micros: When its computation ended, since `all_start_micros`.
        all_end_rel_micros: When the executor was done with it, since `all_start_micros`.
        memory: What it took from each allocator.
        output: What it made.
        timeline_label: `name = OpType(input, ...)`.
        scheduled_micros: When it became ready, since the epoch.
        thread_id: The thread that ran it.
    """

    __slots__ = ()
    node_name = Single(Text())
    all_start_micros = Single(Integer(64))
    op_start_rel_micros = Single(Integer(64))
    op_end_rel_micros = Single(Integer(64))
    all_end_rel_micros = Single(Integer(64))
    memory = repeated_settings(AllocatorMemoryUsed)
    output = repeated_settings(NodeOutput)
    timeline_label = Single(Text())
    scheduled_micros = Single(Integer(64))
    thread_id = Single(Integer(32, signed=False))
    all_start_nanos = Single(Integer(64))
    op_start_rel_nanos = Single(Integer(64))
    op_end_rel_nanos = Single(Integer(64))
    all_end_rel_nanos = Single(Integer(64))
    scheduled_nanos = Single(Integer(64))


class DeviceStepStats(Settings):
    """What ran on one device; `thread_names` names the lanes that `NodeExecStats.thread_id` numbers."""

    __slots__ = ()
    device = Single(Text())
    node_stats = repeated_settings(NodeExecStats)
    thread_names = mapping(Integer(32, signed=False), Text())


class StepStats(Settings):
    """What one step ran, device by device."""

    __slots__ = ()
    dev_stats = repeated_settings(DeviceStepStats)
