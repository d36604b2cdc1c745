import ctypes
import gc
import os
import threading
from pathlib import Path

import numpy as np
import pytest

from xlalite.backends.base import CompileOptions
from xlalite.backends.codegen.llvm import TargetInfo
from xlalite.backends.cpu.backend import CpuBackend
from xlalite.backends.cpu.executable import CpuExecutable
from xlalite.backends.cpu.native import thread_pool
from xlalite.backends.cpu.native.jit import compile_ir
from xlalite.backends.cpu.native.linker import link
from xlalite.backends.cpu.native.object_code import IrSource
from xlalite.backends.cpu.native.thread_pool import ThreadPool, get_pool
from xlalite.backends.cpu.native.thread_pool_ir import serial_pool_ir, thread_pool_ir
from xlalite.backends.cpu.native.threads import PARALLEL_FOR, has_native_pool
from xlalite.hlo.text import parse

needs_workers = pytest.mark.skipif(not has_native_pool(), reason="no worker threads on this platform")

# Adds one to each element's counter; notes who did it.
COUNT = """
declare i64 @pthread_self()
define void @count(ptr %args, i64 %begin, i64 %end) {
entry:
  %counts = load ptr, ptr %args
  %owners_address = getelementptr ptr, ptr %args, i64 1
  %owners = load ptr, ptr %owners_address
  %self = call i64 @pthread_self()
  %any = icmp slt i64 %begin, %end
  br i1 %any, label %next, label %done
next:
  %i = phi i64 [ %begin, %entry ], [ %j, %next ]
  %count = getelementptr i64, ptr %counts, i64 %i
  %unused = atomicrmw add ptr %count, i64 1 monotonic
  %owner = getelementptr i64, ptr %owners, i64 %i
  store i64 %self, ptr %owner
  %j = add i64 %i, 1
  %more = icmp slt i64 %j, %end
  br i1 %more, label %next, label %done
done:
  ret void
}
; Records where slices begin, to be checked against the grain.
define void @mark(ptr %args, i64 %begin, i64 %end) {
  %marks = load ptr, ptr %args
  %mark = getelementptr i64, ptr %marks, i64 %begin
  store i64 %end, ptr %mark
  ret void
}
; Each slice waits until `wanted` slices are running at once, for a bounded time; then counts itself as met.
define void @meet(ptr %args, i64 %begin, i64 %end) {
entry:
  %arrived = load ptr, ptr %args
  %wanted_address = getelementptr i64, ptr %args, i64 1
  %wanted = load i64, ptr %wanted_address
  %met = getelementptr i64, ptr %arrived, i64 16
  %unused = atomicrmw add ptr %arrived, i64 1 seq_cst
  br label %look
look:
  %turn = phi i64 [ 0, %entry ], [ %next_turn, %wait ]
  %now = load atomic i64, ptr %arrived seq_cst, align 8
  %all = icmp sge i64 %now, %wanted
  br i1 %all, label %meeting, label %wait
wait:
  %unused_yield = call i32 @sched_yield()
  %next_turn = add i64 %turn, 1
  %patient = icmp slt i64 %next_turn, 20000000
  br i1 %patient, label %look, label %done
meeting:
  %unused_met = atomicrmw add ptr %met, i64 1 seq_cst
  br label %done
done:
  ret void
}
; A job inside each slice of a job.
declare void @xlalite_parallel_for(ptr, ptr, ptr, i64, i64)
define void @nested(ptr %args, i64 %begin, i64 %end) {
  %context_address = getelementptr ptr, ptr %args, i64 2
  %context = load ptr, ptr %context_address
  call void @xlalite_parallel_for(ptr %context, ptr @count, ptr %args, i64 64, i64 1)
  ret void
}
define void @repeat(ptr %context, ptr %args, i64 %extent, i64 %grain, i64 %times) {
entry:
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %j, %next ]
  call void @xlalite_parallel_for(ptr %context, ptr @count, ptr %args, i64 %extent, i64 %grain)
  %j = add i64 %i, 1
  %more = icmp slt i64 %j, %times
  br i1 %more, label %next, label %done
done:
  ret void
}
declare i32 @sched_yield()
"""


@pytest.fixture(scope="module")
def kernels(link_text):
    return link_text(COUNT)


class Job:
    """Counters and owners for a job."""

    def __init__(self, extent: int, pool: ThreadPool) -> None:
        self.counts = np.zeros(max(extent, 64), np.int64)
        self.owners = np.zeros(max(extent, 64), np.int64)
        self.words = np.array([self.counts.ctypes.data, self.owners.ctypes.data, pool.context_address], np.uintp)

    @property
    def address(self) -> int:
        return self.words.ctypes.data


def thread_ids() -> set[str]:
    return set(os.listdir("/proc/self/task"))


def are_gone(threads: set[str]) -> bool:
    """Whether threads that were joined leave the process table, which the system does a moment later."""
    for _ in range(1_000_000):
        if not threads & thread_ids():
            return True
        os.sched_yield()
    return False


def meet(pool: ThreadPool, kernels, count: int) -> int:
    """How many of `count` slices ran at the same time as all others."""
    arrived = np.zeros(32, np.int64)
    words = np.array([arrived.ctypes.data, count], np.int64)
    pool.parallel_for(kernels.address("meet"), words.ctypes.data, count)
    return int(arrived[16])


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
@pytest.mark.parametrize(
    ("extent", "grain"),
    [(1, 1), (2, 1), (7, 2), (64, 1), (1000, 7), (1000, 999), (1000, 0), (5, 9), (1000, -7), (5, -9)],
)
def test_each_index_runs_once(kernels, threads, extent, grain):
    pool = get_pool(threads)
    job = Job(extent, pool)
    pool.parallel_for(kernels.address("count"), job.address, extent, grain)
    assert (job.counts[:extent] == 1).all()
    assert len(set(job.owners[:extent])) <= threads


@pytest.fixture
def one_processor():
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    yield
    os.sched_setaffinity(0, allowed)


@needs_workers
@pytest.mark.skipif(not TargetInfo.host().triple.startswith("x86_64"), reason="threads do not know their processors")
def test_a_worker_takes_no_part_in_a_short_job_on_its_owner_s_processor(kernels, one_processor):
    pool = ThreadPool(3)
    job = Job(64, pool)
    for turn in range(100):
        pool.parallel_for(kernels.address("count"), job.address, 64, -1)
        assert (job.counts == turn + 1).all()
        assert set(job.owners) == {threading.get_ident()}
        os.sched_yield()


@needs_workers
def test_a_worker_takes_part_in_a_long_job_wherever_it_is(kernels, one_processor):
    pool = ThreadPool(3)
    pool.parallel_for(kernels.address("count"), Job(64, pool).address, 64, -1)
    assert meet(pool, kernels, 3) == 3


@pytest.mark.parametrize("extent", [0, -3])
def test_empty_range_runs_nothing(kernels, extent):
    pool = get_pool(2)
    job = Job(0, pool)
    pool.parallel_for(kernels.address("count"), job.address, extent)
    assert not job.counts.any()


def test_slices_begin_at_multiples_of_the_grain_and_cover_the_range(kernels):
    ends = np.zeros(1000, np.int64)
    words = np.array([ends.ctypes.data], np.uintp)
    get_pool(3).parallel_for(kernels.address("mark"), words.ctypes.data, 1000, 7)
    (begins,) = ends.nonzero()
    assert (begins % 7 == 0).all()
    assert list(ends[begins[:-1]]) == list(begins[1:])
    assert (begins[0], ends[begins[-1]]) == (0, 1000)


@needs_workers
@pytest.mark.parametrize("threads", [2, 4])
def test_as_many_threads_as_asked_work_at_once(kernels, threads):
    # Every slice waits for the others, so each needs a thread of its own.
    assert meet(ThreadPool(threads), kernels, threads) == threads


def test_many_jobs_in_a_row_are_all_done(kernels, native_function):
    pointer, word = ctypes.c_void_p, ctypes.c_int64
    repeat = native_function(kernels, "repeat", None, pointer, pointer, word, word, word)
    for threads, times in ((2, 20000), (3, 300)):
        pool = get_pool(threads)
        job = Job(50, pool)
        repeat(pool.context_address, job.address, 50, 3, times)
        assert (job.counts[:50] == times).all()


def test_nested_jobs_run(kernels):
    pool = get_pool(2)
    job = Job(64, pool)
    pool.parallel_for(kernels.address("nested"), job.address, 8)
    slices = job.counts[0]
    assert (job.counts[:64] == slices).all()
    assert 1 <= slices <= 8


def test_callers_of_several_python_threads_share_a_pool(kernels, native_function):
    pointer, word = ctypes.c_void_p, ctypes.c_int64
    repeat = native_function(kernels, "repeat", None, pointer, pointer, word, word, word)
    pool = get_pool(2)
    jobs = [Job(50, pool) for _ in range(4)]
    callers = [threading.Thread(target=repeat, args=(pool.context_address, job.address, 50, 3, 3000)) for job in jobs]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert all((job.counts[:50] == 3000).all() for job in jobs)


@needs_workers
def test_workers_start_with_the_first_job_and_stop_with_the_pool(kernels):
    before = thread_ids()
    pool = ThreadPool(3)
    assert not thread_ids() - before
    assert meet(pool, kernels, 3) == 3
    workers = thread_ids() - before
    assert len(workers) == 2
    del pool
    gc.collect()
    assert are_gone(workers)


@needs_workers
def test_workers_do_not_start_while_a_process_forks(kernels):
    before = thread_ids()
    started, other = ThreadPool(2), ThreadPool(2)
    assert meet(started, kernels, 2) == 2
    workers = thread_ids()
    with thread_pool._starts:
        job = Job(64, other)
        other.parallel_for(kernels.address("count"), job.address, 64)
        assert (job.counts == 1).all()
        assert set(job.owners) == {threading.get_ident()}
        assert thread_ids() == workers
        assert meet(started, kernels, 2) == 2
    assert meet(other, kernels, 2) == 2
    assert len(thread_ids() - before) == 2


@needs_workers
def test_workers_take_no_signals(kernels):
    before = thread_ids()
    pool = ThreadPool(2)
    assert meet(pool, kernels, 2) == 2
    (worker,) = thread_ids() - before
    status = Path(f"/proc/self/task/{worker}/status").read_text()
    blocked = next(line.split()[1] for line in status.splitlines() if line.startswith("SigBlk"))
    sigint, sigterm, sigalrm = 1 << 1, 1 << 14, 1 << 13
    assert int(blocked, 16) & (sigint | sigterm | sigalrm) == sigint | sigterm | sigalrm


def test_pools_are_shared_by_size():
    assert get_pool(2) is get_pool(2)
    assert get_pool(2) is not get_pool(3)
    assert get_pool(3).num_threads == 3


def test_single_thread_needs_no_native_pool():
    assert ThreadPool(1).address == 0


FORK = """
import ctypes, os, sys, threading
sys.path.insert(0, "tests/backends/cpu/native")
import numpy as np
from test_thread_pool import COUNT, Job, meet, thread_ids
from xlalite.backends.cpu.native.jit import compile_ir
from xlalite.backends.cpu.native.linker import link
from xlalite.backends.cpu.native.object_code import IrSource
from xlalite.backends.cpu.native.thread_pool import get_pool, runtime_imports

kernels = link([compile_ir(IrSource(COUNT))], runtime_imports())
pool = get_pool(2)
assert meet(pool, kernels, 2) == 2
repeat = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 3)(kernels.address("repeat"))
background = Job(50, pool)
stop = threading.Event()
def keep_busy():
    while not stop.is_set():
        repeat(pool.context_address, background.address, 50, 3, 100)
other = threading.Thread(target=keep_busy)
other.start()
children = []
for _ in range(8):  # some of them are forked in the middle of a job
    child = os.fork()
    if child == 0:
        ok = len(thread_ids()) == 1
        job = Job(100, pool)
        pool.parallel_for(kernels.address("count"), job.address, 100)
        ok = ok and bool((job.counts[:100] == 1).all())
        ok = ok and get_pool(2) is pool and meet(pool, kernels, 2) == 2 and len(thread_ids()) == 2
        grandchild = os.fork()
        if grandchild == 0:
            os._exit(0 if meet(get_pool(3), kernels, 3) == 3 else 1)
        ok = ok and os.waitpid(grandchild, 0)[1] == 0
        os._exit(0 if ok else 1)
    children.append(child)
statuses = [os.waitpid(child, 0)[1] for child in children]
stop.set()
other.join()
assert meet(pool, kernels, 2) == 2
print(statuses)
"""


@needs_workers
def test_forked_children_have_pools_of_their_own(run_python, tmp_path):
    process = run_python(FORK, XLALITE_CACHE_DIR=str(tmp_path), PYTHONWARNINGS="ignore")
    output, errors = process.communicate(timeout=20)
    assert process.returncode == 0, errors
    assert output.strip() == str([0] * 8)


EXIT = """
from xlalite.backends.cpu.native.jit import compile_ir
from xlalite.backends.cpu.native.linker import link
from xlalite.backends.cpu.native.object_code import IrSource
from xlalite.backends.cpu.native.thread_pool import ThreadPool, runtime_imports
kernel = link([compile_ir(IrSource("define void @k(ptr %a, i64 %b, i64 %e) { ret void }"))], runtime_imports())
pools = [ThreadPool(n) for n in (1, 2, 3, 5)]
for pool in pools:
    pool.parallel_for(kernel.address("k"), 0, 100)
"""


def test_interpreter_exits_with_pools_alive(run_python, tmp_path):
    process = run_python(EXIT, XLALITE_CACHE_DIR=str(tmp_path))
    assert process.communicate(timeout=20) == ("", "")
    assert process.returncode == 0


def test_without_workers_the_caller_runs_the_whole_range(native_function):
    """As where `has_native_pool` is false; the context is not looked at."""
    slices: list[tuple[int, int]] = []
    kernel = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(
        lambda arguments, begin, end: slices.append((begin, end))
    )
    module = link([compile_ir(IrSource(serial_pool_ir()))])
    pointer, word = ctypes.c_void_p, ctypes.c_int64
    parallel_for = native_function(module, PARALLEL_FOR, None, pointer, type(kernel), pointer, word, word)
    parallel_for(None, kernel, None, 100, 8)
    parallel_for(None, kernel, None, 0, 8)
    assert slices == [(0, 100)]


@pytest.mark.parametrize(
    ("processor", "waits_by"), [("x86_64", "pause"), ("aarch64", "yield"), ("riscv64", ""), ("loongarch64", "")]
)
def test_the_pool_is_code_for_every_processor_that_has_one(processor, waits_by):
    target = TargetInfo.of(f"{processor}-unknown-linux-gnu")
    # The programs that other tests run import this module, too.
    import llvmlite.binding as llvm
    from llvm_machine import machine_for

    with llvm.create_context() as context, llvm.parse_assembly(thread_pool_ir(target), context) as module:
        module.verify()
        assembly = machine_for(target).emit_assembly(module)
    assert PARALLEL_FOR in assembly
    assert waits_by in assembly


@pytest.mark.parametrize(("size", "threads"), [(4, 1), (1 << 21, 2)])
def test_code_that_forks_nothing_has_no_workers(size: int, threads: int) -> None:
    text = f"HloModule m\nENTRY e {{ x = f32[{size}] parameter(0)\n ROOT r = f32[{size}] negate(x) }}"
    executable = CpuBackend().compile(parse(text), CompileOptions(num_threads=2))
    assert isinstance(executable, CpuExecutable)
    assert executable.call.entry.pool.num_threads == threads
    x = np.arange(size, dtype=np.float32)
    np.testing.assert_array_equal(executable(x), -x)
