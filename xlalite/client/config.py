"""The settings of sessions and of single runs, under TensorFlow's names.

Fields marked *no effect* are accepted so that existing programs run unchanged; what they steer does not exist here.
xlalite's own knobs are in `ConfigProto.xlalite`; for each of them the session's value wins over the flag of the same
meaning in `XLALITE_FLAGS`, which wins over the default.
"""

from enum import IntEnum
from typing import Final

from xlalite.client.message import MapOf, Message, Nested, Repeated, RepeatedMessages, Single
from xlalite.client.message_values import Boolean, Enumeration, Integer, Real, Text
from xlalite.client.step_stats import StepStats


class GlobalJitLevel(IntEnum):
    """How much of a graph is clustered and compiled without being asked."""

    DEFAULT = 0
    OFF = -1
    ON_1 = 1
    ON_2 = 2


class OptimizationLevel(IntEnum):
    """TensorFlow's own graph optimizations."""

    L1 = 0
    L0 = -1


class OptimizerOptions(Message):
    """How a session's graphs are optimized.

    Attributes:
        global_jit_level: `ON_1` or `ON_2` cluster and compile; `DEFAULT` leaves the choice to `XLALITE_FLAGS`.
        opt_level: No effect: HLO passes do what these optimizations did.
        do_common_subexpression_elimination: No effect, as `opt_level`.
        do_constant_folding: No effect, as `opt_level`.
        max_folded_constant_in_bytes: No effect, as `opt_level`.
        do_function_inlining: No effect, as `opt_level`.
    """

    __slots__ = ()
    GlobalJitLevel = GlobalJitLevel
    Level = OptimizationLevel
    DEFAULT: Final = GlobalJitLevel.DEFAULT
    OFF: Final = GlobalJitLevel.OFF
    ON_1: Final = GlobalJitLevel.ON_1
    ON_2: Final = GlobalJitLevel.ON_2
    L1: Final = OptimizationLevel.L1
    L0: Final = OptimizationLevel.L0

    do_common_subexpression_elimination = Single(Boolean())
    do_constant_folding = Single(Boolean())
    max_folded_constant_in_bytes = Single(Integer(64))
    do_function_inlining = Single(Boolean())
    opt_level = Single(Enumeration(OptimizationLevel))
    global_jit_level = Single(Enumeration(GlobalJitLevel))


class Toggle(IntEnum):
    """Whether a graph rewriter runs."""

    DEFAULT = 0
    ON = 1
    OFF = 2
    AGGRESSIVE = 3


class MemoryOptimization(IntEnum):
    """How memory would be saved by rewriting the graph."""

    DEFAULT_MEM_OPT = 0
    NO_MEM_OPT = 1
    MANUAL = 2
    HEURISTICS = 3
    SWAPPING_HEURISTICS = 4
    RECOMPUTATION_HEURISTICS = 5
    SCHEDULING_HEURISTICS = 6


class RewriterConfig(Message):
    """Switches of TensorFlow's graph rewriters; all without effect, since HLO passes take their place."""

    __slots__ = ()
    Toggle = Toggle
    MemOptType = MemoryOptimization
    DEFAULT: Final = Toggle.DEFAULT
    ON: Final = Toggle.ON
    OFF: Final = Toggle.OFF
    AGGRESSIVE: Final = Toggle.AGGRESSIVE
    NO_MEM_OPT: Final = MemoryOptimization.NO_MEM_OPT

    layout_optimizer = Single(Enumeration(Toggle))
    constant_folding = Single(Enumeration(Toggle))
    shape_optimization = Single(Enumeration(Toggle))
    remapping = Single(Enumeration(Toggle))
    arithmetic_optimization = Single(Enumeration(Toggle))
    dependency_optimization = Single(Enumeration(Toggle))
    loop_optimization = Single(Enumeration(Toggle))
    function_optimization = Single(Enumeration(Toggle))
    debug_stripper = Single(Enumeration(Toggle))
    scoped_allocator_optimization = Single(Enumeration(Toggle))
    implementation_selector = Single(Enumeration(Toggle))
    auto_mixed_precision = Single(Enumeration(Toggle))
    memory_optimization = Single(Enumeration(MemoryOptimization))
    disable_model_pruning = Single(Boolean())
    disable_meta_optimizer = Single(Boolean())
    min_graph_nodes = Single(Integer())


class GraphOptions(Message):
    """How a session treats its graph.

    Attributes:
        optimizer_options: Holds `global_jit_level`.
        rewrite_options: No effect.
        enable_recv_scheduling: No effect.
        build_cost_model: No effect.
        build_cost_model_after: No effect.
        infer_shapes: No effect: shapes are inferred when an operation is made.
        place_pruned_graph: No effect.
        enable_bfloat16_sendrecv: No effect.
        timeline_step: No effect.
    """

    __slots__ = ()
    enable_recv_scheduling = Single(Boolean())
    optimizer_options = Nested(OptimizerOptions)
    build_cost_model = Single(Integer(64))
    build_cost_model_after = Single(Integer(64))
    infer_shapes = Single(Boolean())
    place_pruned_graph = Single(Boolean())
    enable_bfloat16_sendrecv = Single(Boolean())
    timeline_step = Single(Integer())
    rewrite_options = Nested(RewriterConfig)


class GPUOptions(Message):
    """How memory of GPUs would be handed out; no effect."""

    __slots__ = ()
    per_process_gpu_memory_fraction = Single(Real())
    allow_growth = Single(Boolean())
    allocator_type = Single(Text())
    deferred_deletion_bytes = Single(Integer(64))
    visible_device_list = Single(Text())
    polling_active_delay_usecs = Single(Integer())
    polling_inactive_delay_msecs = Single(Integer())
    force_gpu_compatible = Single(Boolean())


class ThreadPoolOptionProto(Message):
    """A named pool of threads that runs operations; no effect."""

    __slots__ = ()
    num_threads = Single(Integer())
    global_name = Single(Text())


class CompileMode(IntEnum):
    """When a cluster is compiled."""

    DEFAULT = 0
    LAZY = 1
    STRICT = 2
    OFF = 3


class XlaliteOptions(Message):
    """xlalite's own knobs; 0 and empty mean "not said here".

    Attributes:
        compile_mode: `LAZY` compiles a signature at its second use (the first signature at once) and runs the
            operations one by one until then; `STRICT` compiles each signature at once and fails where it cannot;
            `OFF` clusters but never compiles.
        lazy_compile_threshold: At which use of a signature `LAZY` compiles.
        min_cluster_size: Clusters with fewer operations are dissolved.
        max_cluster_size: Clusters do not grow beyond this.
        ops_to_cluster: When given, only these op types, or groups such as `PW` or `FUSIBLE`, are clustered.
        cluster_exclude_ops: Op types that are never clustered.
        compilation_cache_bytes: How much compiled code a session keeps before it drops the least recently used.
    """

    __slots__ = ()
    CompileMode = CompileMode
    DEFAULT: Final = CompileMode.DEFAULT
    LAZY: Final = CompileMode.LAZY
    STRICT: Final = CompileMode.STRICT
    OFF: Final = CompileMode.OFF

    compile_mode = Single(Enumeration(CompileMode))
    lazy_compile_threshold = Single(Integer())
    min_cluster_size = Single(Integer())
    max_cluster_size = Single(Integer())
    ops_to_cluster = Repeated(Text())
    cluster_exclude_ops = Repeated(Text())
    compilation_cache_bytes = Single(Integer(64))


class ConfigProto(Message):
    """The configuration of a session.

    Attributes:
        intra_op_parallelism_threads: Threads that one compiled cluster uses; 0 takes XLALITE_NUM_THREADS or the
            processors that the process may use.
        inter_op_parallelism_threads: No effect: operations of a step run in one order.
        graph_options: Holds the JIT level.
        xlalite: xlalite's own knobs.
        allow_soft_placement: No effect: every device name means this computer's processors.
        log_device_placement: Prints the device of each operation of the graphs that run.
        operation_timeout_in_ms: No effect.
        device_count: No effect.
        device_filters: No effect.
        gpu_options: No effect.
        isolate_session_state: No effect: variables always belong to their session.
        placement_period: No effect.
        session_inter_op_thread_pool: No effect.
        use_per_session_threads: No effect.
    """

    __slots__ = ()
    device_count = MapOf(Text(), Integer())
    intra_op_parallelism_threads = Single(Integer())
    placement_period = Single(Integer())
    device_filters = Repeated(Text())
    inter_op_parallelism_threads = Single(Integer())
    gpu_options = Nested(GPUOptions)
    allow_soft_placement = Single(Boolean())
    log_device_placement = Single(Boolean())
    use_per_session_threads = Single(Boolean())
    graph_options = Nested(GraphOptions)
    operation_timeout_in_ms = Single(Integer(64))
    session_inter_op_thread_pool = RepeatedMessages(ThreadPoolOptionProto)
    isolate_session_state = Single(Boolean())
    xlalite = Nested(XlaliteOptions)


class TraceLevel(IntEnum):
    """How closely a run is watched."""

    NO_TRACE = 0
    SOFTWARE_TRACE = 1
    HARDWARE_TRACE = 2
    FULL_TRACE = 3


class RunOptions(Message):
    """The options of one `Session.run`.

    Attributes:
        trace_level: Anything above `NO_TRACE` fills `RunMetadata.step_stats`.
        timeout_in_ms: The step is given up after this time; 0 waits for ever.
        inter_op_thread_pool: No effect.
        output_partition_graphs: No effect.
        report_tensor_allocations_upon_oom: No effect.
    """

    __slots__ = ()
    TraceLevel = TraceLevel
    NO_TRACE: Final = TraceLevel.NO_TRACE
    SOFTWARE_TRACE: Final = TraceLevel.SOFTWARE_TRACE
    HARDWARE_TRACE: Final = TraceLevel.HARDWARE_TRACE
    FULL_TRACE: Final = TraceLevel.FULL_TRACE

    trace_level = Single(Enumeration(TraceLevel))
    timeout_in_ms = Single(Integer(64))
    inter_op_thread_pool = Single(Integer())
    output_partition_graphs = Single(Boolean())
    report_tensor_allocations_upon_oom = Single(Boolean())


class RunMetadata(Message):
    """What one `Session.run` tells about itself.

    Attributes:
        step_stats: Which operations ran when, on which thread, and what they made.
    """

    __slots__ = ()
    step_stats = Nested(StepStats)
