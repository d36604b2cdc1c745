"""`tf.train.ClusterSpec` and `Server`: which processes there are; here one runs a whole program."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from threading import Event
from typing import Any, Final

from xlalite.framework.graph.device import DeviceSpec
from xlalite.framework.graph.errors import UnimplementedError
from xlalite.framework.graph.operation import Operation

_VARIABLES: Final = ("Variable", "VariableV2", "AutoReloadVariable", "MutableHashTable", "MutableHashTableV2",
                     "MutableHashTableOfTensors", "MutableHashTableOfTensorsV2", "MutableDenseHashTable",
                     "MutableDenseHashTableV2", "VarHandleOp", "BoostedTreesEnsembleResourceHandleOp")  # fmt: skip
"""Types of operations that make variables."""


class ClusterSpec:
    """The addresses of the tasks of each job."""

    def __init__(self, cluster: Any) -> None:
        """Takes job name to a list of addresses, or to a dictionary of them by task; or another specification.

        Raises:
            TypeError: it is none of these.
        """
        if isinstance(cluster, ClusterSpec):
            cluster = cluster.as_dict()
        if not isinstance(cluster, Mapping):
            raise TypeError(
                "`cluster` must be a dictionary mapping one or more job names to lists of network addresses"
            )
        self._jobs: dict[str, dict[int, str]] = {}
        for job, tasks in cluster.items():
            if not isinstance(tasks, Mapping) and (isinstance(tasks, str) or not isinstance(tasks, Sequence)):
                raise TypeError(f"The tasks for job {job!r} must be a list or a dictionary from integers to strings.")
            pairs = tasks.items() if isinstance(tasks, Mapping) else enumerate(tasks)
            self._jobs[str(job)] = {int(task): str(address) for task, address in sorted(pairs)}

    @property
    def jobs(self) -> list[str]:
        """The names of the jobs."""
        return list(self._jobs)

    def as_dict(self) -> dict[str, list[str] | dict[int, str]]:
        """Job name to addresses: a list if the tasks are numbered from 0 without gaps."""
        return {
            job: list(tasks.values()) if list(tasks) == list(range(len(tasks))) else dict(tasks)
            for job, tasks in self._jobs.items()
        }

    def num_tasks(self, job_name: str) -> int:
        """How many tasks a job has."""
        return len(self._tasks(job_name))

    def task_indices(self, job_name: str) -> list[int]:
        """The numbers of a job's tasks."""
        return list(self._tasks(job_name))

    def task_address(self, job_name: str, task_index: int) -> str:
        """The address of a task.

        Raises:
            ValueError: there is no such task.
        """
        tasks = self._tasks(job_name)
        if task_index not in tasks:
            raise ValueError(f"No task with index {task_index!r} in job {job_name!r}")
        return tasks[task_index]

    def job_tasks(self, job_name: str) -> list[str | None]:
        """The addresses of a job by task; None where there is no task."""
        tasks = self._tasks(job_name)
        return [tasks.get(task) for task in range(max(tasks, default=-1) + 1)]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClusterSpec) and self._jobs == other._jobs

    __hash__ = None  # type: ignore[assignment]  # as equal things may be written differently

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def __repr__(self) -> str:
        return f"ClusterSpec({self.as_dict()!r})"

    def _tasks(self, job_name: str) -> dict[int, str]:
        if job_name not in self._jobs:
            raise ValueError(f"No such job in cluster: {job_name!r}")
        return self._jobs[job_name]


class Server:
    """The only process of a cluster: sessions at its target run in this process."""

    def __init__(
        self,
        server_or_cluster_def: Any,
        job_name: str | None = None,
        task_index: int | None = None,
        protocol: str | None = None,
        config: Any = None,
        start: bool = True,
    ) -> None:
        """A server of a cluster with one task.

        Raises:
            UnimplementedError: the cluster has several.
        """
        self._cluster = ClusterSpec(server_or_cluster_def)
        count = sum(self._cluster.num_tasks(job) for job in self._cluster.jobs)
        if count > 1:
            raise UnimplementedError(None, None, f"Server: a cluster has one task here, this one has {count}")

    @staticmethod
    def create_local_server(config: Any = None, start: bool = True) -> Server:
        """A cluster of this process alone."""
        return Server({"local": ["localhost:0"]})

    @property
    def target(self) -> str:
        """What sessions are opened with."""
        return ""

    @property
    def server_def(self) -> ClusterSpec:
        """The cluster."""
        return self._cluster

    def start(self) -> None:
        """Does nothing: it runs already."""

    def join(self) -> None:
        """Waits for ever, as the server of a process that only serves does."""
        Event().wait()


def replica_device_setter(
    ps_tasks: int = 0,
    ps_device: str = "/job:ps",
    worker_device: str = "/job:worker",
    merge_devices: bool = True,
    cluster: Any = None,
    ps_ops: Sequence[str] | None = None,
    ps_strategy: Callable[[Operation], int] | None = None,
) -> Callable[[Operation], str] | None:
    """A function for `tf.device` that puts variables on the tasks of parameter servers in turn, the rest on a worker.

    Args:
        ps_tasks: Number of the tasks.
        ps_device: Their device; an empty one leaves variables where they are asked for.
        worker_device: The device of everything else.
        merge_devices: Has no effect: parts of a name that one device leaves open are always those of another around.
        cluster: A `ClusterSpec`, or what one is made of; its `ps` job has the tasks, the others do not count.
        ps_ops: Types of operations that are put on parameter servers; those that make variables and tables by default.
        ps_strategy: Gives the task of an operation.

    Returns:
        The function; None without tasks.

    Raises:
        TypeError: `cluster` is no specification.
    """
    if cluster is not None:
        job = DeviceSpec.from_string(ps_device).job or "ps"
        jobs = ClusterSpec(cluster).as_dict()
        if not jobs.get(job):
            return None
        ps_tasks = len(jobs[job])
    if ps_tasks == 0:
        return None
    numbers, placed = itertools.count(), frozenset(_VARIABLES if ps_ops is None else ps_ops)

    def task_of(operation: Operation) -> int:
        return next(numbers) % ps_tasks

    def device_of(operation: Operation) -> str:
        if operation.type not in placed or not ps_device:
            return worker_device
        wanted = DeviceSpec.from_string(ps_device)
        if wanted.job is None or wanted.task is not None:
            return ps_device
        return str(replace(wanted, task=(ps_strategy or task_of)(operation)))

    return device_of
