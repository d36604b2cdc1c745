"""The settings of sessions and of single runs, under TensorFlow's names.

`Accepted` settings, and what is inside settings without effect, are taken so that existing programs run unchanged: what
they steer does not exist here. HLO passes do what TensorFlow's graph optimizations did, shapes are inferred when an
operation is made, every device name means this computer's processors unless `device_count` asks for several CPUs, the
operations of a device run in one order, and variables always belong to their session.

xlalite's own knobs are in `ConfigProto.xlalite`; for each of them the session's value wins over the flag of the same
meaning in `XLALITE_FLAGS`, which wins over the default.
"""

from enum import IntEnum
from typing import Final

from xlalite.client.step_stats import StepStats
from xlalite.messages.setting_values import Boolean, Enumeration, Integer, Real, Text
from xlalite.messages.settings import Accepted, Nested, Settings, Single, mapping, repeated, repeated_settings


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


class OptimizerOptions(Settings):
    """How a session's graphs are optimized.

    Attributes:
        global_jit_level: `ON_1` or `ON_2` cluster and compile; `DEFAULT` leaves the choice to `XLALITE_FLAGS`.
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

    do_common_subexpression_elimination = Accepted(Boolean())
    do_constant_folding = Accepted(Boolean())
    max_folded_constant_in_bytes = Accepted(Integer(64))
    do_function_inlining = Accepted(Boolean())
    opt_level = Accepted(Enumeration(OptimizationLevel))
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


class RewriterConfig(Settings):
    """Switches of TensorFlow's graph rewriters; all without effect, since HLO passes take their place."""

    __slots__ = ()
    Toggle = Toggle
    MemOptType = MemoryOptimization
    DEFAULT: Final = Toggle.DEFAULT
    ON: Final = Toggle.ON
    OFF: Final = Toggle.OFF
    AGGRESSIVE: Final = Toggle.AGGRESSIVE
    NO_MEM_OPT: Final = MemoryOptimization.NO_MEM_OPT

    layout_optimizer = Accepted(Enumeration(Toggle))
    constant_folding = Accepted(Enumeration(Toggle))
    shape_optimization = Accepted(Enumeration(Toggle))
    remapping = Accepted(Enumeration(Toggle))
    arithmetic_optimization = Accepted(Enumeration(Toggle))
    dependency_optimization = Accepted(Enumeration(Toggle))
    loop_optimization = Accepted(Enumeration(Toggle))
    function_optimization = Accepted(Enumeration(Toggle))
    debug_stripper = Accepted(Enumeration(Toggle))
    scoped_allocator_optimization = Accepted(Enumeration(Toggle))
    implementation_selector = Accepted(Enumeration(Toggle))
    auto_mixed_precision = Accepted(Enumeration(Toggle))
    memory_optimization = Accepted(Enumeration(MemoryOptimization))
    disable_model_pruning = Accepted(Boolean())
    disable_meta_optimizer = Accepted(Boolean())
    min_graph_nodes = Accepted(Integer())


class GraphOptions(Settings):
    """How a session treats its graph.

    Attributes:
        optimizer_options: Holds `global_jit_level`.
    """

    __slots__ = ()
    enable_recv_scheduling = Accepted(Boolean())
    optimizer_options = Nested(OptimizerOptions)
    build_cost_model = Accepted(Integer(64))
    build_cost_model_after = Accepted(Integer(64))
    infer_shapes = Accepted(Boolean())
    place_pruned_graph = Accepted(Boolean())
    enable_bfloat16_sendrecv = Accepted(Boolean())
    timeline_step = Accepted(Integer())
    rewrite_options = Nested(RewriterConfig)


class GPUOptions(Settings):
    """How memory of GPUs would be handed out; no effect."""

    __slots__ = ()
    per_process_gpu_memory_fraction = Accepted(Real())
    allow_growth = Accepted(Boolean())
    allocator_type = Accepted(Text())
    deferred_deletion_bytes = Accepted(Integer(64))
    visible_device_list = Accepted(Text())
    polling_active_delay_usecs = Accepted(Integer())
    polling_inactive_delay_msecs = Accepted(Integer())
    force_gpu_compatible = Accepted(Boolean())


class ThreadPoolOptionProto(Settings):
    """A named pool of threads that runs operations; no effect."""

    __slots__ = ()
    num_threads = Accepted(Integer())
    global_name = Accepted(Text())


class CompileMode(IntEnum):
    """When a cluster is compiled."""

    DEFAULT = 0
    LAZY = 1
    STRICT = 2
    OFF = 3
    ASYNC = 4


class XlaliteOptions(Settings):
    """xlalite's own knobs; 0 and empty mean "not said here".

    Attributes:
        compile_mode: `LAZY` compiles a signature at its second use (the first signature at once) and runs the
            operations one by one until then; `ASYNC` does so too, and compiles in the background; `STRICT` compiles
            each signature at once and fails where it cannot; `OFF` clusters but never compiles.
        lazy_compile_threshold: At which use of a signature `LAZY` compiles.
        max_compilations: For how many signatures `LAZY` and `ASYNC` compile one cluster; others run op by op then.
        keep_faster: Whether each cluster runs both compiled and op by op in turn at first, and then keeps to what was
            faster; what both took is in the cluster report.
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
    ASYNC: Final = CompileMode.ASYNC

    compile_mode = Single(Enumeration(CompileMode))
    lazy_compile_threshold = Single(Integer())
    max_compilations = Single(Integer())
    keep_faster = Single(Boolean())
    min_cluster_size = Single(Integer())
    max_cluster_size = Single(Integer())
    ops_to_cluster = repeated(Text())
    cluster_exclude_ops = repeated(Text())
    compilation_cache_bytes = Single(Integer(64))


class ConfigProto(Settings):
    """The configuration of a session.

    Attributes:
        intra_op_parallelism_threads: Threads that one compiled cluster uses; 0 takes XLALITE_NUM_THREADS or the
            processors that the process may use.
        graph_options: Holds the JIT level.
        xlalite: xlalite's own knobs.
        log_device_placement: Prints the device of each operation of the graphs that run.
        device_count: `{"CPU": n}` makes n devices of this computer's processors; a step runs on all of them at once.
        allow_soft_placement: With several devices, operations that ask for one that there is not lie on the first.
        operation_timeout_in_ms: When runs that say nothing themselves are given up; 0 for never.
    """

    __slots__ = ()
    device_count = mapping(Text(), Integer())
    intra_op_parallelism_threads = Single(Integer())
    placement_period = Accepted(Integer())
    device_filters = repeated(Text())
    inter_op_parallelism_threads = Accepted(Integer())
    gpu_options = Nested(GPUOptions)
    allow_soft_placement = Single(Boolean())
    log_device_placement = Single(Boolean())
    use_per_session_threads = Accepted(Boolean())
    graph_options = Nested(GraphOptions)
    operation_timeout_in_ms = Single(Integer(64))
    session_inter_op_thread_pool = repeated_settings(ThreadPoolOptionProto)
    isolate_session_state = Accepted(Boolean())
    xlalite = Nested(XlaliteOptions)


class TraceLevel(IntEnum):
    """How closely a run is watched."""

    NO_TRACE = 0
    SOFTWARE_TRACE = 1
    HARDWARE_TRACE = 2
    FULL_TRACE = 3


class RunOptions(Settings):
    """The options of one `Session.run`.

    Attributes:
        trace_level: Anything above `NO_TRACE` fills `RunMetadata.step_stats`.
        timeout_in_ms: The step is given up after this time; 0 waits for ever.
    """

    __slots__ = ()
    TraceLevel = TraceLevel
    NO_TRACE: Final = TraceLevel.NO_TRACE
    SOFTWARE_TRACE: Final = TraceLevel.SOFTWARE_TRACE
    HARDWARE_TRACE: Final = TraceLevel.HARDWARE_TRACE
    FULL_TRACE: Final = TraceLevel.FULL_TRACE

    trace_level = Single(Enumeration(TraceLevel))
    timeout_in_ms = Single(Integer(64))
    inter_op_thread_pool = Accepted(Integer())
    output_partition_graphs = Accepted(Boolean())
    report_tensor_allocations_upon_oom = Accepted(Boolean())


class RunMetadata(Settings):
    """What one `Session.run` tells about itself.

    Attributes:
        step_stats: Which operations ran when, on which thread, and what they made.
    """

    __slots__ = ()
    step_stats = Nested(StepStats)
