"""What a session goes by: its configuration, then the flags, then the defaults."""

from dataclasses import dataclass

from xlalite.client.config import CompileMode, ConfigProto, GlobalJitLevel
from xlalite.client.message_values import FieldValueError
from xlalite.flags import Flags, debug_options
from xlalite.passes.core.debug_options import DebugOptions

LAZY_COMPILE_THRESHOLD = 2


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """The settled options of one session.

    Attributes:
        jit_level: `OFF`, `ON_1` or `ON_2`; operations inside a JIT scope are clustered at any level.
        compile_mode: `LAZY`, `STRICT` or `OFF`.
        lazy_compile_threshold: At which use of a signature `LAZY` compiles; the first signature compiles at once.
        min_cluster_size: Clusters with fewer operations are dissolved.
        max_cluster_size: Clusters do not grow beyond this.
        clustering_fuel: How many operations may become candidates.
        ops_to_cluster: The only op types, or groups of them, that are clustered; empty for all.
        cluster_exclude_ops: Op types that are never clustered.
        clustering_debug: Whether the graph is dumped around clustering.
        num_threads: Threads of compiled code; None leaves the choice to the backend.
        compilation_cache_bytes: How much compiled code is kept; None for no limit.
        debug: Dumps, and what restricts the passes.
    """

    jit_level: GlobalJitLevel
    compile_mode: CompileMode
    lazy_compile_threshold: int
    min_cluster_size: int
    max_cluster_size: int
    clustering_fuel: int
    ops_to_cluster: tuple[str, ...]
    cluster_exclude_ops: tuple[str, ...]
    clustering_debug: bool
    num_threads: int | None
    compilation_cache_bytes: int | None
    debug: DebugOptions


def settle(config: ConfigProto, flags: Flags) -> SessionOptions:
    """The options of a session with this configuration under these flags.

    Raises:
        FieldValueError: A number in the configuration is negative.
    """
    own = config.xlalite
    for where, value in (
        ("intra_op_parallelism_threads", config.intra_op_parallelism_threads),
        ("xlalite.lazy_compile_threshold", own.lazy_compile_threshold),
        ("xlalite.min_cluster_size", own.min_cluster_size),
        ("xlalite.max_cluster_size", own.max_cluster_size),
        ("xlalite.compilation_cache_bytes", own.compilation_cache_bytes),
    ):
        if value < 0:
            raise FieldValueError(f"ConfigProto.{where}: expected 0 (not said here) or more, found {value}")
    level = config.graph_options.optimizer_options.global_jit_level or GlobalJitLevel(flags.tf_xla_auto_jit)
    return SessionOptions(
        jit_level=level or GlobalJitLevel.OFF,
        compile_mode=own.compile_mode or _compile_mode(flags),
        lazy_compile_threshold=own.lazy_compile_threshold or LAZY_COMPILE_THRESHOLD,
        min_cluster_size=own.min_cluster_size or flags.tf_xla_min_cluster_size,
        max_cluster_size=own.max_cluster_size or flags.tf_xla_max_cluster_size,
        clustering_fuel=flags.tf_xla_clustering_fuel,
        ops_to_cluster=tuple(own.ops_to_cluster) or flags.tf_xla_ops_to_cluster,
        cluster_exclude_ops=tuple(own.cluster_exclude_ops) or flags.tf_xla_cluster_exclude_ops,
        clustering_debug=flags.tf_xla_clustering_debug,
        num_threads=config.intra_op_parallelism_threads or flags.xlalite_num_threads or None,
        compilation_cache_bytes=own.compilation_cache_bytes or None,
        debug=debug_options(flags),
    )


def _compile_mode(flags: Flags) -> CompileMode:
    if flags.tf_xla_always_defer_compilation:
        return CompileMode.OFF
    return CompileMode.LAZY if flags.tf_xla_enable_lazy_compilation else CompileMode.STRICT
