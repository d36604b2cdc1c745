"""Sessions: they run a graph, keep its variables, and compile what is worth it."""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any

from numpy import ndarray

from xlalite.client.config import ConfigProto, RunMetadata, RunOptions
from xlalite.client.feeds import Feed, feeds_of_parts, resolve_feed
from xlalite.client.fetches import Fetches, fetch_key, resolve_fetches
from xlalite.client.session_errors import FeedError, FeedTypeError, SessionError
from xlalite.client.session_options import SessionOptions, settle
from xlalite.client.session_runtime import SessionRuntime
from xlalite.client.step_trace_messages import CPU_DEVICE, step_stats
from xlalite.flags import flags_from_environment
from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.default_session import default_session, push_default_session, remove_default_session
from xlalite.framework.graph.graph import Graph
from xlalite.framework.meaning.host import Array
from xlalite.hlo.garbage import few_collections
from xlalite.hlo.record_tables import RecordTable
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.decision import Decision
from xlalite.runtime.cluster_report import ClusterReport
from xlalite.runtime.deadline import Deadline
from xlalite.runtime.jit_report import JitReport
from xlalite.runtime.placement import Placer, device_names
from xlalite.runtime.plan import Plan, PlanRequest
from xlalite.runtime.trace import StepTrace

if TYPE_CHECKING:
    from xlalite.client.partial_runs import PartialRun
    from xlalite.client.session_dump import SessionDump

_MOST_PLANS = 1024
"""So many sets of fetches and feeds keep their plans; the one run longest ago goes first."""


@dataclass(frozen=True, slots=True)
class DeviceAttributes:
    """A device that a session can use."""

    name: str
    device_type: str
    memory_limit_bytes: int = 0
    incarnation: int = 0


@dataclass(frozen=True, slots=True)
class _PreparedRun:
    """Everything about a run that its values do not change.

    Attributes:
        plan: The steps.
        feeds: How each value is fed, in the order of the keys.
        fetches: Gives the results their structure.
    """

    plan: Plan
    feeds: tuple[Feed, ...]
    fetches: Fetches


class Session:
    """Runs operations of a graph; variables live as long as it does. Safe for concurrent runs."""

    def __init__(self, target: str = "", graph: Graph | None = None, config: ConfigProto | None = None) -> None:
        """A session on `graph`, by default the default graph.

        Args:
            target: Must be empty: sessions run in this process.
            graph: The graph to run; it may grow between runs.
            config: How to run; the flags of `XLALITE_FLAGS` stand behind it.

        Raises:
            SessionError: A remote target.
            FlagError: `XLALITE_FLAGS` cannot be read.
            FieldValueError: The configuration holds a number that makes no sense.
        """
        if target:
            raise SessionError(f"Session target {target!r}: only '' is supported, sessions run in this process")
        if config is not None and not isinstance(config, ConfigProto):
            raise TypeError(f"Session: config must be a ConfigProto, found {type(config).__name__}")
        self._graph = get_default_graph() if graph is None else graph
        self._config = ConfigProto()
        if config is not None:
            self._config.CopyFrom(config)
        self._options: SessionOptions = settle(self._config, flags_from_environment())
        self._devices = device_names(self._config.device_count.get("CPU", 1))
        several = Placer(self._devices, self._config.allow_soft_placement) if len(self._devices) > 1 else None
        self._runtime = SessionRuntime(self._options, several)
        self._store = self._runtime.store
        self._timeout_ms = self._config.operation_timeout_in_ms
        self._dump = _session_dump(self._options)
        self._runs_plainly = self._dump is None and self._timeout_ms <= 0
        self._prepared: OrderedDict[Hashable, _PreparedRun] = OrderedDict()
        self._latest: _PreparedRun | None = None
        self._prepare_lock = threading.Lock()
        self._closed = False
        self._entered: list[ExitStack] = []

    @property
    def graph(self) -> Graph:
        """The graph that the session runs."""
        return self._graph

    def run(
        self,
        fetches: Any,
        feed_dict: Mapping[Any, Any] | None = None,
        options: RunOptions | None = None,
        run_metadata: RunMetadata | None = None,
    ) -> Any:
        """Runs what the fetches need and gives their values.

        Args:
            fetches: A tensor, operation, variable or name, or any nesting of lists, tuples and dictionaries of them.
            feed_dict: Values for tensors, by tensor or name; any tensor may be fed.
            options: Whether to trace, and when to give up.
            run_metadata: Takes the trace.

        Returns:
            The structure of `fetches` with arrays for tensors, NumPy scalars where they have rank 0, and None for
            operations.

        Raises:
            SessionError: The session is closed, or the graph is empty.
            FetchError, FetchTypeError: Something to fetch is not in the graph.
            FeedError, FeedTypeError: A value does not fit its tensor.
            XlaliteError: An operation failed.
        """
        if not feed_dict:
            key: Hashable = fetch_key(fetches)
            prepared = self._recent(key) or self._prepare(key, fetches, ())
            arrays: list[Array] = []
        else:
            if type(feed_dict) is not dict:
                _require_mapping(feed_dict)
            feeds = tuple(feed_dict)
            key = (fetch_key(fetches), feeds)
            found = self._recent(key)
            if found is None and (parts := feeds_of_parts(feed_dict)) is not None:
                return self.run(fetches, parts, options, run_metadata)
            prepared = found or self._prepare(key, fetches, feeds)
            try:
                arrays = [
                    value
                    if type(value) is ndarray and value.dtype is feed.dtype and value.shape == feed.accepted
                    else feed.convert(value)
                    # There are as many as the key of the run says; to say it here costs as much as a feed.
                    for feed, value in zip(prepared.feeds, feed_dict.values())  # noqa: B905
                ]
            except FeedError as error:
                raise error.with_traceback(None) from None  # as in `Executable.__call__`
        if options is None and self._runs_plainly:  # the usual run, with one call less
            return prepared.fetches.assemble(prepared.plan.run(arrays, self._store))
        return self._run_prepared(prepared, arrays, options, run_metadata)

    def make_callable(
        self, fetches: Any, feed_list: Sequence[Any] | None = None, accept_options: bool = False
    ) -> Callable[..., Any]:
        """A function that takes the values of `feed_list` in order and does what `run` does.

        Args:
            fetches: As for `run`.
            feed_list: The tensors to feed.
            accept_options: Whether the function also takes `options` and `run_metadata`.
        """
        keys = tuple(feed_list or ())
        prepared = self._prepare((fetch_key(fetches), keys), fetches, keys)

        def call(*values: Any, options: RunOptions | None = None, run_metadata: RunMetadata | None = None) -> Any:
            if len(values) != len(prepared.feeds):
                raise FeedError(f"the callable takes {len(prepared.feeds)} values, found {len(values)}")
            if (options is not None or run_metadata is not None) and not accept_options:
                raise FeedTypeError("the callable takes no options; make it with accept_options=True")
            self._require_open()
            arrays = [feed.convert(value) for feed, value in zip(prepared.feeds, values, strict=True)]
            return self._run_prepared(prepared, arrays, options, run_metadata)

        return call

    def partial_run_setup(self, fetches: Any, feeds: Sequence[Any] | None = None) -> PartialRun:
        """A step to be run in parts by `partial_run`.

        Args:
            fetches: All that the parts will fetch.
            feeds: All tensors that they will feed.
        """
        from xlalite.client.partial_runs import PartialRun  # few programs run in parts

        self._require_open()
        return PartialRun(self._graph, fetches, feeds or ())

    def partial_run(self, handle: PartialRun, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> Any:
        """A part of a step: what the fetches are, once these values are fed too."""
        self._require_open()
        return handle.run(fetches, feed_dict, self._runtime.store)

    def list_devices(self) -> list[DeviceAttributes]:
        """The devices: as many as the configuration asks for, each of them this computer's processors."""
        self._require_open()
        return [DeviceAttributes(name, "CPU") for name in self._devices]

    def jit_report(self) -> JitReport:
        """How much of what ran so far was compiled; its text is one line."""
        return self._runtime.jit_report(self._plans())

    def cluster_report(self) -> ClusterReport:
        """The clusters of everything that ran so far, and why each other operation is in none."""
        return ClusterReport(self._plans())

    def decisions(self) -> tuple[Decision, ...]:
        """What clustering and compilation decided so far."""
        return RecordTable(decision for plan in self._plans() for decision in plan.decisions)

    @property
    def compilation_cache(self) -> Any:
        """The session's compiled clusters: `statistics()`, `executables()`, `clear()`."""
        return self._runtime.cache

    def close(self) -> None:
        """Forgets the variables and the compiled code; closing again does nothing."""
        if self._dump is not None and not self._closed:
            self._dump.write(self._plans())
        self._closed = True
        self._prepared.clear()
        self._latest = None
        self._runtime.close()

    @contextmanager
    def as_default(self) -> Iterator[Session]:
        """Makes this the default session, and leaves it open."""
        with default_session(self):
            yield self

    def __enter__(self) -> Session:
        stack = ExitStack()
        stack.enter_context(self._graph.as_default())
        stack.enter_context(default_session(self))
        self._entered.append(stack)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._entered.pop().close()
        self.close()

    def _plans(self) -> list[Plan]:
        with self._prepare_lock:
            return [prepared.plan for prepared in list(self._prepared.values())]

    def _recent(self, key: Hashable) -> _PreparedRun | None:
        """The run prepared for a key, which becomes the last to be forgotten."""
        found = self._prepared.get(key)
        if found is not self._latest and found is not None:
            with suppress(KeyError):  # another thread's run may push it out between the two
                self._prepared.move_to_end(key)
            self._latest = found
        return found

    @few_collections
    def _prepare(self, key: Hashable, fetches: Any, feed_keys: tuple[Any, ...]) -> _PreparedRun:
        self._require_open()
        with self._prepare_lock:
            found = self._prepared.get(key)
            if found is not None:
                return found
            if not self._graph.version:
                raise SessionError("The Session graph is empty: add operations to the graph before calling run()")
            resolved = resolve_fetches(self._graph, fetches)
            feeds = tuple(resolve_feed(self._graph, feed_key) for feed_key in feed_keys)
            tensors = tuple(feed.tensor for feed in feeds)
            for position, tensor in enumerate(tensors):
                if tensor in tensors[:position]:
                    raise FeedError(f"Tensor {tensor.name!r} is fed twice")
            plan = self._runtime.builder.build(PlanRequest(tensors, resolved.tensors, resolved.targets))
            if self._config.log_device_placement:
                _log_placement(plan)
            prepared = self._prepared[key] = _PreparedRun(plan, feeds, resolved)
            if len(self._prepared) > _MOST_PLANS:
                self._prepared.popitem(last=False)
            return prepared

    def _run_prepared(
        self,
        prepared: _PreparedRun,
        arrays: list[Array],
        options: RunOptions | None,
        run_metadata: RunMetadata | None,
    ) -> Any:
        store = self._store
        timeout = self._timeout_ms if options is None else options.timeout_in_ms or self._timeout_ms
        if options is None and timeout <= 0:
            results = prepared.plan.run(arrays, store)
        else:
            trace = StepTrace() if options is not None and options.trace_level else None
            deadline = Deadline(timeout) if timeout > 0 else None
            with nullcontext() if deadline is None else deadline.limits_waiting():
                results = prepared.plan.run(arrays, store, trace, deadline)
            if trace is not None and run_metadata is not None:
                run_metadata.step_stats.CopyFrom(step_stats(trace))
        if self._dump is not None:
            self._dump.update(self._plans())
        return prepared.fetches.assemble(results)

    def _require_open(self) -> None:
        if self._closed:
            raise SessionError("Attempted to use a closed Session.")


class InteractiveSession(Session):
    """A session that makes itself and its graph the defaults until it is closed."""

    def __init__(self, target: str = "", graph: Graph | None = None, config: ConfigProto | None = None) -> None:
        """As for `Session`."""
        super().__init__(target, graph, config)
        self._default_graph = ExitStack()
        if self._graph is not get_default_graph():
            self._default_graph.enter_context(self._graph.as_default())
        push_default_session(self)

    def close(self) -> None:
        """Takes the defaults back and closes the session."""
        remove_default_session(self)
        self._default_graph.close()
        super().close()


def _session_dump(options: SessionOptions) -> SessionDump | None:
    """The dump of a new session; its code is loaded only where dumps are wanted."""
    if options.runtime.debug.dump_to is None:
        return None
    from xlalite.client.session_dump import SessionDump
    from xlalite.passes.dump.dumper import session_dumper

    dumper = session_dumper(options.runtime.debug)
    return None if dumper is None else SessionDump(dumper, options.dumps_graphs)


def _require_mapping(feed_dict: object) -> None:
    if not isinstance(feed_dict, Mapping):
        raise FeedTypeError(f"feed_dict must be a dictionary, found {type(feed_dict).__name__}")


def _log_placement(plan: Plan) -> None:
    for operation in plan.operations:
        device = CPU_DEVICE if plan.placement is None else plan.placement.device[operation]
        print(f"{operation.name}: ({operation.type}): {device}", file=sys.stderr)
