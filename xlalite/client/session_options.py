"""What a session goes by: its configuration, then the flags, then the defaults."""

from xlalite.client.config import ConfigProto, GlobalJitLevel
from xlalite.clustering.options import ClusteringOptions
from xlalite.flags import Flags, debug_options, extra_passes
from xlalite.hlo.records import dataclass
from xlalite.messages.setting_values import FieldValueError
from xlalite.runtime.options import CompileMode, RuntimeOptions

LAZY_COMPILE_THRESHOLD = 2


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """The settled options of one session.

    Attributes:
        clustering: How operations are clustered; those inside a JIT scope are at any level.
        runtime: How clusters are compiled and run.
        dumps_graphs: Whether dumps show each operation with its cluster.
    """

    clustering: ClusteringOptions
    runtime: RuntimeOptions
    dumps_graphs: bool


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
        ("xlalite.max_compilations", own.max_compilations),
        ("xlalite.compilation_cache_bytes", own.compilation_cache_bytes),
    ):
        if value < 0:
            raise FieldValueError(f"ConfigProto.{where}: expected 0 (not said here) or more, found {value}")
    level = config.graph_options.optimizer_options.global_jit_level or flags.tf_xla_auto_jit
    clustering = ClusteringOptions(
        global_jit=level in (GlobalJitLevel.ON_1, GlobalJitLevel.ON_2),
        min_cluster_size=own.min_cluster_size or flags.tf_xla_min_cluster_size,
        max_cluster_size=own.max_cluster_size or flags.tf_xla_max_cluster_size,
        fuel=flags.tf_xla_clustering_fuel,
        ops_to_cluster=tuple(own.ops_to_cluster) or flags.tf_xla_ops_to_cluster,
        cluster_exclude_ops=tuple(own.cluster_exclude_ops) or flags.tf_xla_cluster_exclude_ops,
    )
    runtime = RuntimeOptions(
        compile_mode=CompileMode[own.compile_mode.name] if own.compile_mode else _compile_mode(flags),
        lazy_compile_threshold=own.lazy_compile_threshold or LAZY_COMPILE_THRESHOLD,
        num_threads=config.intra_op_parallelism_threads or flags.xlalite_num_threads or None,
        keep_faster=own.keep_faster or flags.xlalite_keep_faster,
        max_compilations=own.max_compilations or None,
        cache_bytes=own.compilation_cache_bytes or None,
        debug=debug_options(flags),
        optimize=not flags.xla_disable_all_hlo_passes,
        extra_passes=extra_passes(flags),
    )
    return SessionOptions(clustering, runtime, flags.tf_xla_clustering_debug)


def _compile_mode(flags: Flags) -> CompileMode:
    if flags.tf_xla_always_defer_compilation:
        return CompileMode.OFF
    if flags.tf_xla_async_compilation:
        return CompileMode.ASYNC
    return CompileMode.LAZY if flags.tf_xla_enable_lazy_compilation else CompileMode.STRICT
