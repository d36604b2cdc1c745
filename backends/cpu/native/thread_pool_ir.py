"""The thread pool's machine code, as LLVM text.

One fork-join at a time owns the pool. The owner publishes a job by writing a new generation with the open bit into the
*gate*; a worker that sees it joins by adding one to the gate's count, takes part, and adds one to `left`. When no work
is left to claim, the owner closes the gate and waits until `left` has reached the count of those who joined. So nobody
ever waits for a worker that sleeps or was not scheduled: the owner then does all the work itself, and a pool whose
workers are gone (a forked child) still gives right results.

The extent is cut into one range a thread, each range into chunks; a thread claims the chunks of its own range first
(the same thread meets the same memory in every kernel) and then helps the others.

Idle workers watch the gate for a short while and then wait on it with a futex. Knows nothing of Python.
"""

from __future__ import annotations

import platform
import string
import struct
import sys

PARALLEL_FOR = "xlalite_parallel_for"
MAX_THREADS = 512
CACHE_LINE_PAIR_BYTES = 128

_SLOT_FIELDS = ("next", "end", "pad_slot", "thread", "pool", "index", "pad_end")
_POOL_FIELDS = (
    "gate", "sleepers", "stop", "pad_gate",
    "left", "waiting", "pad_left",
    "kernel", "arguments", "extent", "grain", "chunk", "slots", "pad_job",
    "threads", "spin", "started", "busy", "pad_config",
    "slot",
)  # fmt: skip
_FUTEX_SYSCALL = {"x86_64": 202, "aarch64": 98, "riscv64": 98, "loongarch64": 98}
_RELAX = {
    "x86_64": ("call void @llvm.x86.sse2.pause()", "declare void @llvm.x86.sse2.pause()"),
    "aarch64": ("call void @llvm.aarch64.hint(i32 1)", "declare void @llvm.aarch64.hint(i32)"),
}


def has_native_pool() -> bool:
    """Whether worker threads exist here; elsewhere `xlalite_parallel_for` runs everything in the caller."""
    return sys.platform == "linux" and platform.machine() in _FUTEX_SYSCALL and struct.calcsize("P") == 8


def thread_pool_ir() -> str:
    """The module: `xlalite_parallel_for`, and create, destroy, reset and spin functions for `thread_pool.py`."""
    if not has_native_pool():
        return _SERIAL
    machine = platform.machine()
    relax, declaration = _RELAX.get(machine, ("", ""))
    names = {name: f"i32 0, i32 {index}" for index, name in enumerate(_SLOT_FIELDS)}
    names |= {name: f"i32 0, i32 {index}" for index, name in enumerate(_POOL_FIELDS)}
    text = string.Template(_PARALLEL).substitute(
        names, futex=_FUTEX_SYSCALL[machine], relax=relax, relax_declaration=declaration
    )
    return text


_SERIAL = """
define void @xlalite_parallel_for(ptr %context, ptr %kernel, ptr %arguments, i64 %extent, i64 %grain) {
entry:
  %any = icmp sgt i64 %extent, 0
  br i1 %any, label %work, label %done
work:
  call void %kernel(ptr %arguments, i64 0, i64 %extent)
  br label %done
done:
  ret void
}
"""

# The gate: bits 0-9 count the workers that joined, bit 10 says that they may, the rest numbers the job.
_PARALLEL = """
%Slot = type { i64, i64, [48 x i8], i64, ptr, i64, [40 x i8] }
%Pool = type { i32, i32, i32, [116 x i8],
               i32, i32, [120 x i8],
               ptr, ptr, i64, i64, i64, i64, [80 x i8],
               i32, i32, i32, i32, [112 x i8],
               [0 x %Slot] }

define void @xlalite_parallel_for(ptr %context, ptr %kernel, ptr %arguments, i64 %extent, i64 %grain) {
entry:
  %any = icmp sgt i64 %extent, 0
  br i1 %any, label %work, label %done
work:
  %divisible = icmp sgt i64 %extent, %grain
  br i1 %divisible, label %find_pool, label %alone
find_pool:
  %pool = load ptr, ptr %context
  %serial = icmp eq ptr %pool, null
  br i1 %serial, label %alone, label %claim_pool
claim_pool:                                   ; fails in a nested call, and while another caller has the pool
  %busy = getelementptr %Pool, ptr %pool, $busy
  %was_busy = atomicrmw xchg ptr %busy, i32 1 acquire
  %free = icmp eq i32 %was_busy, 0
  br i1 %free, label %fork, label %alone
fork:
  call void @fork_join(ptr %pool, ptr %kernel, ptr %arguments, i64 %extent, i64 %grain)
  store atomic i32 0, ptr %busy release, align 4
  ret void
alone:
  call void %kernel(ptr %arguments, i64 0, i64 %extent)
  br label %done
done:
  ret void
}

define internal void @fork_join(ptr %pool, ptr %kernel, ptr %arguments, i64 %extent, i64 %grain_wanted) {
entry:
  %started_address = getelementptr %Pool, ptr %pool, $started
  %started = load i32, ptr %started_address
  %is_started = icmp ne i32 %started, 0
  br i1 %is_started, label %divide, label %start
start:
  call void @start_workers(ptr %pool)
  br label %divide
divide:
  %grain = call i64 @llvm.smax.i64(i64 %grain_wanted, i64 1)
  %last = sub i64 %extent, 1
  %full_units = udiv i64 %last, %grain
  %units = add i64 %full_units, 1
  %threads_address = getelementptr %Pool, ptr %pool, $threads
  %threads32 = load i32, ptr %threads_address
  %threads = zext i32 %threads32 to i64
  %slots = call i64 @llvm.umin.i64(i64 %threads, i64 %units)
  %chunks = shl i64 %slots, 2
  %chunk_down = udiv i64 %units, %chunks
  %chunk = call i64 @llvm.umax.i64(i64 %chunk_down, i64 1)
  %kernel_address = getelementptr %Pool, ptr %pool, $kernel
  store ptr %kernel, ptr %kernel_address
  %arguments_address = getelementptr %Pool, ptr %pool, $arguments
  store ptr %arguments, ptr %arguments_address
  %extent_address = getelementptr %Pool, ptr %pool, $extent
  store i64 %extent, ptr %extent_address
  %grain_address = getelementptr %Pool, ptr %pool, $grain
  store i64 %grain, ptr %grain_address
  %chunk_address = getelementptr %Pool, ptr %pool, $chunk
  store i64 %chunk, ptr %chunk_address
  %slots_address = getelementptr %Pool, ptr %pool, $slots
  store i64 %slots, ptr %slots_address
  %share = udiv i64 %units, %slots
  %extra = urem i64 %units, %slots            ; the first ranges are longer by one
  br label %ranges
ranges:
  %slot_index = phi i64 [ 0, %divide ], [ %next_slot_index, %ranges ]
  %begin = phi i64 [ 0, %divide ], [ %end, %ranges ]
  %is_longer = icmp ult i64 %slot_index, %extra
  %one_more = zext i1 %is_longer to i64
  %length = add i64 %share, %one_more
  %end = add i64 %begin, %length
  %slot = getelementptr %Pool, ptr %pool, $slot, i64 %slot_index
  %next_address = getelementptr %Slot, ptr %slot, $next
  store atomic i64 %begin, ptr %next_address monotonic, align 8
  %end_address = getelementptr %Slot, ptr %slot, $end
  store i64 %end, ptr %end_address
  %next_slot_index = add i64 %slot_index, 1
  %more = icmp ult i64 %next_slot_index, %slots
  br i1 %more, label %ranges, label %publish
publish:
  %left_address = getelementptr %Pool, ptr %pool, $left
  store atomic i32 0, ptr %left_address monotonic, align 4
  %waiting_address = getelementptr %Pool, ptr %pool, $waiting
  store atomic i32 0, ptr %waiting_address monotonic, align 4
  %gate_address = getelementptr %Pool, ptr %pool, $gate
  %old_gate = load atomic i32, ptr %gate_address monotonic, align 4
  %old_job = and i32 %old_gate, -2048
  %opened = add i32 %old_job, 3072            ; next job, open, nobody joined
  %unused_gate = atomicrmw xchg ptr %gate_address, i32 %opened seq_cst
  %sleepers_address = getelementptr %Pool, ptr %pool, $sleepers
  %sleepers = load atomic i32, ptr %sleepers_address seq_cst, align 4
  %anybody_asleep = icmp sgt i32 %sleepers, 0
  br i1 %anybody_asleep, label %wake, label %take_part
wake:
  %slots32 = trunc i64 %slots to i32
  %helpers = sub i32 %slots32, 1
  call void @futex_wake(ptr %gate_address, i32 %helpers)
  br label %take_part
take_part:
  call void @run_chunks(ptr %pool, i64 0)
  %final_gate = atomicrmw and ptr %gate_address, i32 -1025 acq_rel
  %joined = and i32 %final_gate, 1023
  %spin_address = getelementptr %Pool, ptr %pool, $spin
  %spin = load i32, ptr %spin_address
  br label %watch
watch:
  %patience = phi i32 [ %spin, %take_part ], [ %less_patience, %watch_more ]
  %left = load atomic i32, ptr %left_address acquire, align 4
  %all_left = icmp eq i32 %left, %joined
  br i1 %all_left, label %done, label %still_working
still_working:
  %is_patient = icmp sgt i32 %patience, 0
  br i1 %is_patient, label %watch_more, label %announce
watch_more:
  $relax
  %less_patience = sub i32 %patience, 1
  br label %watch
announce:
  %unused_waiting = atomicrmw xchg ptr %waiting_address, i32 1 seq_cst
  br label %sleep
sleep:
  %left_now = load atomic i32, ptr %left_address seq_cst, align 4
  %all_left_now = icmp eq i32 %left_now, %joined
  br i1 %all_left_now, label %done, label %sleep_once
sleep_once:
  call void @futex_wait(ptr %left_address, i32 %left_now)
  br label %sleep
done:
  ret void
}

define internal void @run_chunks(ptr %pool, i64 %first_slot) {
entry:
  %kernel_address = getelementptr %Pool, ptr %pool, $kernel
  %kernel = load ptr, ptr %kernel_address
  %arguments_address = getelementptr %Pool, ptr %pool, $arguments
  %arguments = load ptr, ptr %arguments_address
  %extent_address = getelementptr %Pool, ptr %pool, $extent
  %extent = load i64, ptr %extent_address
  %grain_address = getelementptr %Pool, ptr %pool, $grain
  %grain = load i64, ptr %grain_address
  %chunk_address = getelementptr %Pool, ptr %pool, $chunk
  %chunk = load i64, ptr %chunk_address
  %slots_address = getelementptr %Pool, ptr %pool, $slots
  %slots = load i64, ptr %slots_address
  br label %each_slot
each_slot:
  %visited = phi i64 [ 0, %entry ], [ %visited_more, %next_slot ]
  %wanted = add i64 %first_slot, %visited
  %slot_index = urem i64 %wanted, %slots
  %slot = getelementptr %Pool, ptr %pool, $slot, i64 %slot_index
  %next_address = getelementptr %Slot, ptr %slot, $next
  %end_address = getelementptr %Slot, ptr %slot, $end
  %end = load i64, ptr %end_address
  br label %look
look:                                         ; reading first spares the others' cache lines
  %seen = load atomic i64, ptr %next_address monotonic, align 8
  %is_open = icmp ult i64 %seen, %end
  br i1 %is_open, label %claim, label %next_slot
claim:
  %first_unit = atomicrmw add ptr %next_address, i64 %chunk monotonic
  %is_mine = icmp ult i64 %first_unit, %end
  br i1 %is_mine, label %run, label %next_slot
run:
  %unit_limit = add i64 %first_unit, %chunk
  %last_unit = call i64 @llvm.umin.i64(i64 %unit_limit, i64 %end)
  %begin = mul i64 %first_unit, %grain
  %stop_wanted = mul i64 %last_unit, %grain
  %stop = call i64 @llvm.umin.i64(i64 %stop_wanted, i64 %extent)
  call void %kernel(ptr %arguments, i64 %begin, i64 %stop)
  br label %look
next_slot:
  %visited_more = add i64 %visited, 1
  %more = icmp ult i64 %visited_more, %slots
  br i1 %more, label %each_slot, label %done
done:
  ret void
}

define internal ptr @worker(ptr %slot) {
entry:
  %pool_address = getelementptr %Slot, ptr %slot, $pool
  %pool = load ptr, ptr %pool_address
  %index_address = getelementptr %Slot, ptr %slot, $index
  %index = load i64, ptr %index_address
  %gate_address = getelementptr %Pool, ptr %pool, $gate
  %sleepers_address = getelementptr %Pool, ptr %pool, $sleepers
  %stop_address = getelementptr %Pool, ptr %pool, $stop
  %left_address = getelementptr %Pool, ptr %pool, $left
  %waiting_address = getelementptr %Pool, ptr %pool, $waiting
  %spin_address = getelementptr %Pool, ptr %pool, $spin
  %spin = load i32, ptr %spin_address
  br label %watch
watch:
  %last_job = phi i32 [ -1, %entry ], [ %last_job, %relax ], [ %last_job, %asleep ], [ %last_job, %lost ],
                      [ %job, %after_work ]
  %patience = phi i32 [ %spin, %entry ], [ %less_patience, %relax ], [ %spin, %asleep ], [ %patience, %lost ],
                      [ %spin, %after_work ]
  %gate = load atomic i32, ptr %gate_address acquire, align 4
  %job = and i32 %gate, -2048
  %open_bit = and i32 %gate, 1024
  %is_open = icmp ne i32 %open_bit, 0
  %is_new = icmp ne i32 %job, %last_job
  %may_join = and i1 %is_open, %is_new
  br i1 %may_join, label %join, label %idle
join:
  %gate_joined = add i32 %gate, 1
  %exchange = cmpxchg ptr %gate_address, i32 %gate, i32 %gate_joined acq_rel monotonic
  %has_joined = extractvalue { i32, i1 } %exchange, 1
  br i1 %has_joined, label %work, label %lost
lost:
  br label %watch
work:
  call void @run_chunks(ptr %pool, i64 %index)
  %unused_left = atomicrmw add ptr %left_address, i32 1 seq_cst
  %owner_waits = load atomic i32, ptr %waiting_address seq_cst, align 4
  %must_wake = icmp ne i32 %owner_waits, 0
  br i1 %must_wake, label %wake_owner, label %after_work
wake_owner:
  call void @futex_wake(ptr %left_address, i32 1)
  br label %after_work
after_work:
  br label %watch
idle:
  %stop_soon = load atomic i32, ptr %stop_address acquire, align 4
  %stops = icmp ne i32 %stop_soon, 0
  br i1 %stops, label %quit, label %stay
stay:
  %is_patient = icmp sgt i32 %patience, 0
  br i1 %is_patient, label %relax, label %lie_down
relax:
  $relax
  %less_patience = sub i32 %patience, 1
  br label %watch
lie_down:                                     ; count first, look again, then wait: the publisher does the reverse
  %unused_sleepers = atomicrmw add ptr %sleepers_address, i32 1 seq_cst
  %gate_again = load atomic i32, ptr %gate_address seq_cst, align 4
  %job_again = and i32 %gate_again, -2048
  %job_before = and i32 %gate, -2048
  %unchanged = icmp eq i32 %job_again, %job_before
  %stop_again = load atomic i32, ptr %stop_address seq_cst, align 4
  %goes_on = icmp eq i32 %stop_again, 0
  %may_sleep = and i1 %unchanged, %goes_on
  br i1 %may_sleep, label %sleep, label %asleep
sleep:
  call void @futex_wait(ptr %gate_address, i32 %gate_again)
  br label %asleep
asleep:
  %unused_awake = atomicrmw sub ptr %sleepers_address, i32 1 seq_cst
  br label %watch
quit:
  ret ptr null
}

; Workers take no signals: Python's handlers belong to the main thread.
define internal void @start_workers(ptr %pool) {
entry:
  %all_signals = alloca [128 x i8], align 8
  %old_signals = alloca [128 x i8], align 8
  %unused_fill = call i32 @sigfillset(ptr %all_signals)
  %unused_block = call i32 @pthread_sigmask(i32 2, ptr %all_signals, ptr %old_signals)
  %threads_address = getelementptr %Pool, ptr %pool, $threads
  %threads32 = load i32, ptr %threads_address
  %threads = zext i32 %threads32 to i64
  br label %next
next:
  %index = phi i64 [ 1, %entry ], [ %next_index, %record ]
  %more = icmp ult i64 %index, %threads
  br i1 %more, label %create, label %done
create:
  %slot = getelementptr %Pool, ptr %pool, $slot, i64 %index
  %pool_address = getelementptr %Slot, ptr %slot, $pool
  store ptr %pool, ptr %pool_address
  %index_address = getelementptr %Slot, ptr %slot, $index
  store i64 %index, ptr %index_address
  %thread_address = getelementptr %Slot, ptr %slot, $thread
  %error = call i32 @pthread_create(ptr %thread_address, ptr null, ptr @worker, ptr %slot)
  %failed = icmp ne i32 %error, 0
  br i1 %failed, label %forget, label %record
forget:                                       ; too many threads in the system: go on with fewer
  store i64 0, ptr %thread_address
  br label %record
record:
  %next_index = add i64 %index, 1
  br label %next
done:
  %unused_restore = call i32 @pthread_sigmask(i32 2, ptr %old_signals, ptr null)
  %started_address = getelementptr %Pool, ptr %pool, $started
  store i32 1, ptr %started_address
  ret void
}

; A new pool, or null; its workers start with the first job.
define ptr @xlalite_pool_create(i32 %threads, i32 %spin) {
entry:
  %threads64 = zext i32 %threads to i64
  %slots_end = getelementptr %Pool, ptr null, $slot, i64 %threads64
  %size = ptrtoint ptr %slots_end to i64
  %memory = alloca ptr
  %error = call i32 @posix_memalign(ptr %memory, i64 128, i64 %size)
  %failed = icmp ne i32 %error, 0
  br i1 %failed, label %nothing, label %clear
nothing:
  ret ptr null
clear:
  %pool = load ptr, ptr %memory
  call void @llvm.memset.p0.i64(ptr %pool, i8 0, i64 %size, i1 false)
  %threads_address = getelementptr %Pool, ptr %pool, $threads
  store i32 %threads, ptr %threads_address
  %spin_address = getelementptr %Pool, ptr %pool, $spin
  store i32 %spin, ptr %spin_address
  ret ptr %pool
}

; Stops and joins the workers and frees the pool; no job may be running.
define void @xlalite_pool_destroy(ptr %pool) {
entry:
  %stop_address = getelementptr %Pool, ptr %pool, $stop
  %unused_stop = atomicrmw xchg ptr %stop_address, i32 1 seq_cst
  %gate_address = getelementptr %Pool, ptr %pool, $gate
  %unused_gate = atomicrmw add ptr %gate_address, i32 2048 seq_cst
  call void @futex_wake(ptr %gate_address, i32 2147483647)
  %started_address = getelementptr %Pool, ptr %pool, $started
  %started = load i32, ptr %started_address
  %is_started = icmp ne i32 %started, 0
  %threads_address = getelementptr %Pool, ptr %pool, $threads
  %threads32 = load i32, ptr %threads_address
  %threads = zext i32 %threads32 to i64
  br i1 %is_started, label %next, label %free
next:
  %index = phi i64 [ 1, %entry ], [ %next_index, %joined ]
  %more = icmp ult i64 %index, %threads
  br i1 %more, label %look, label %free
look:
  %slot = getelementptr %Pool, ptr %pool, $slot, i64 %index
  %thread_address = getelementptr %Slot, ptr %slot, $thread
  %thread = load i64, ptr %thread_address
  %exists = icmp ne i64 %thread, 0
  br i1 %exists, label %join, label %joined
join:
  %unused_join = call i32 @pthread_join(i64 %thread, ptr null)
  br label %joined
joined:
  %next_index = add i64 %index, 1
  br label %next
free:
  call void @free(ptr %pool)
  ret void
}

; Makes the pool of a forked child idle and without workers; they start anew with its first job.
define void @xlalite_pool_reset(ptr %pool) {
  %started_address = getelementptr %Pool, ptr %pool, $started
  store i32 0, ptr %started_address
  %busy_address = getelementptr %Pool, ptr %pool, $busy
  store i32 0, ptr %busy_address
  %sleepers_address = getelementptr %Pool, ptr %pool, $sleepers
  store i32 0, ptr %sleepers_address
  %gate_address = getelementptr %Pool, ptr %pool, $gate
  store i32 0, ptr %gate_address
  ret void
}

; As many turns of the idle loop, to measure what one costs.
define void @xlalite_spin(i64 %turns) {
entry:
  br label %loop
loop:
  %turn = phi i64 [ 0, %entry ], [ %next_turn, %loop ]
  $relax
  %next_turn = add i64 %turn, 1
  %more = icmp slt i64 %next_turn, %turns
  br i1 %more, label %loop, label %done
done:
  ret void
}

define internal void @futex_wait(ptr %word, i32 %expected) noinline {
  %unused = call i64 (i64, ...) @syscall(i64 $futex, ptr %word, i32 128, i32 %expected, ptr null, ptr null, i32 0)
  ret void
}

define internal void @futex_wake(ptr %word, i32 %count) noinline {
  %unused = call i64 (i64, ...) @syscall(i64 $futex, ptr %word, i32 129, i32 %count, ptr null, ptr null, i32 0)
  ret void
}

declare i64 @syscall(i64, ...)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @sigfillset(ptr)
declare i32 @posix_memalign(ptr, i64, i64)
declare void @free(ptr)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)
$relax_declaration
"""
