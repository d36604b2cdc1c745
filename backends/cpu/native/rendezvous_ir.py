"""The machine code by which the devices of a run meet.

A device comes to a meeting with a number, the ranks that are to be there, and a table of addresses; it goes on when all
of them have come with the same number and ranks, and then knows everybody's table. Meetings come in pairs: after one
with an even number all meet again, with the same tables and an odd number, before what the tables name may change or
go. The last to come lets the others go. Nothing spins: there may be more devices than processors.

A run counts the devices that neither wait nor are gone. When there are none left while some wait, these wait for each
other, or for who is gone: the run is over, and whoever waits, or comes to a meeting afterwards, is told so. What a
device has done until then does not depend on time, since nobody is told before all have gone as far as they could.
A run that is stopped from outside is over at once, but for the second meetings of pairs.

Values that devices send each other are letters (see `mail_ir`) in the memory of the run.

Knows nothing of Python.
"""

from __future__ import annotations

from xlalite.backends.codegen.llvm import (
    I1,
    I32,
    I64,
    PTR,
    VOID,
    FunctionBuilder,
    ModuleBuilder,
    Value,
    constant,
)
from xlalite.backends.cpu.native.mail_ir import (
    DONE,
    UNDONE,
    call,
    drop_letters,
    locked,
    unlock,
    write_host,
    write_letters,
)
from xlalite.backends.cpu.native.record import NULL, Record
from xlalite.backends.cpu.native.rendezvous import (
    AWAIT,
    CLOSE,
    LEAVE,
    MEET,
    OPEN,
    RECEIVE,
    SEND,
    STOP,
    Context,
    DeviceState,
    RunState,
)

RUNNING, WAITING, GONE = range(3)
MET, OVER = range(2)


def rendezvous_ir() -> str:
    """The module."""
    module = ModuleBuilder("rendezvous")
    write_letters(module)
    write_host(module)
    _write_end_if_stuck(module)
    _write_everybody_came(module)
    _write_wait(module)
    _write_meet(module)
    _write_await(module)
    _write_send(module)
    _write_receive(module)
    _write_leave(module)
    _write_stop(module)
    _write_open(module)
    _write_close(module)
    return module.text()


def _write_end_if_stuck(module: ModuleBuilder) -> None:
    """Wakes all who wait once nobody runs."""
    fb = module.function("end_if_stuck", VOID, (PTR,), linkage="internal")
    run = Record(fb, RunState, fb.parameters[0])
    with fb.if_(fb.icmp("eq", run.load("running"), 0)), fb.loop(0, run.load("devices")) as rank:
        device = _device(fb, run, rank)
        with fb.if_(fb.icmp("eq", device.load("state"), WAITING)):
            run.store("over", 1)
            _let_go(fb, run, device, OVER)
    fb.ret()


def _write_everybody_came(module: ModuleBuilder) -> None:
    """Whether all whom a device waits for wait for it, too."""
    fb = module.function("everybody_came", I1, (PTR, PTR), linkage="internal")
    run, own = Record(fb, RunState, fb.parameters[0]), Record(fb, DeviceState, fb.parameters[1])
    count, ranks = own.load("count"), own.load("ranks")
    absent = fb.new_block("absent")
    with fb.loop(0, count) as place:
        other = _device(fb, run, fb.load(I64, fb.gep(I64, ranks, place)))
        for field, wanted in (("state", constant(I32, WAITING)), ("number", own.load("number")), ("count", count)):
            fb.guard(fb.icmp("eq", other.load(field), wanted), absent)
        theirs = other.load("ranks")
        with fb.loop(0, count) as again:
            one, two = (fb.load(I64, fb.gep(I64, table, again)) for table in (ranks, theirs))
            fb.guard(fb.icmp("eq", one, two), absent)
    fb.ret(constant(I1, 1))
    fb.position_at(absent)
    fb.ret(constant(I1, 0))


def _write_wait(module: ModuleBuilder) -> None:
    """Waits until somebody lets the device go; how that ended. The lock is held."""
    fb = module.function("wait", I32, (PTR, PTR), linkage="internal")
    run, own = Record(fb, RunState, fb.parameters[0]), Record(fb, DeviceState, fb.parameters[1])
    run.store("running", fb.sub(run.load("running"), 1))
    call(fb, "end_if_stuck", run.pointer)
    wait = module.declare("pthread_cond_wait", I32, (PTR, PTR))
    with fb.while_loop(()) as sleep:
        sleep.continue_while(fb.icmp("eq", own.load("state"), WAITING))
        fb.call(wait, own.address("awake"), run.address("lock"))
    fb.ret(own.load("outcome"))


def _write_meet(module: ModuleBuilder) -> None:
    fb = module.function(MEET, I32, (PTR, I64, I64, PTR, PTR, PTR))
    address, number, count, ranks, table, tables = fb.parameters
    context = Record(fb, Context, address)
    run = Record(fb, RunState, context.load("run"))
    with fb.if_(fb.icmp("eq", run.pointer, NULL)):
        fb.store(table, tables)
        fb.ret(fb.zext(fb.icmp("ne", count, 1), I32))
    own = _device(fb, run, context.load("rank"))
    with locked(fb, run):
        with fb.if_(fb.and_(run.is_set("over"), _is_first(fb, number))):
            unlock(fb, run)
            fb.ret(constant(I32, OVER))
        own.store("state", constant(I32, WAITING))
        for field, value in (("number", number), ("count", count), ("ranks", ranks), ("own", table)):
            own.store(field, value)
        came = fb.if_else(call(fb, "everybody_came", run.pointer, own.pointer))
        with came.then():
            with fb.loop(0, count) as place:
                other = _device(fb, run, fb.load(I64, fb.gep(I64, ranks, place)))
                with fb.if_(fb.icmp("ne", other.pointer, own.pointer)):
                    _let_go(fb, run, other, MET)
            own.store("state", constant(I32, RUNNING))
            came.yield_(constant(I32, MET))
        with came.otherwise():
            came.yield_(call(fb, "wait", run.pointer, own.pointer))
        (outcome,) = came.results
    with fb.if_(fb.icmp("eq", outcome, MET)), fb.loop(0, count) as place:
        other = _device(fb, run, fb.load(I64, fb.gep(I64, ranks, place)))
        fb.store(other.load("own"), fb.gep(PTR, tables, place))
    fb.ret(outcome)


def _write_await(module: ModuleBuilder) -> None:
    """Waits until something was posted to a device since it last asked."""
    fb = module.function(AWAIT, I32, (PTR, I64))
    run, own = _run_and_device(fb)
    with locked(fb, run):
        posted = own.load("posted")
        own.store("posted", constant(I32, 0))
        is_there = fb.if_else(fb.icmp("ne", fb.or_(posted, run.load("over")), 0))
        with is_there.then():
            is_there.yield_(fb.select(fb.icmp("ne", posted, 0), constant(I32, MET), constant(I32, OVER)))
        with is_there.otherwise():
            own.store("state", constant(I32, WAITING))
            own.store("number", 0)
            own.store("count", 0)
            ended = call(fb, "wait", run.pointer, own.pointer)
            own.store("posted", constant(I32, 0))
            is_there.yield_(ended)
        (outcome,) = is_there.results
    fb.ret(outcome)


def _write_send(module: ModuleBuilder) -> None:
    fb = module.function(SEND, I32, (PTR, I64, I64, PTR, PTR))
    run = Record(fb, RunState, Record(fb, Context, fb.parameters[0]).load("run"))
    undone = fb.new_block("undone")
    fb.guard(fb.icmp("ne", run.pointer, NULL), undone)
    letter = call(fb, "write_letter", *fb.parameters[1:])
    fb.guard(fb.icmp("ne", letter, NULL), undone)
    target = _device(fb, run, fb.parameters[2])
    with locked(fb, run):
        call(fb, "post_letter", run.pointer, letter)
        target.store("posted", constant(I32, 1))
        is_waiting = fb.icmp("eq", target.load("state"), WAITING)
        with fb.if_(fb.and_(is_waiting, fb.icmp("eq", target.load("count"), 0))):
            _let_go(fb, run, target, MET)
    fb.ret(constant(I32, DONE))
    fb.position_at(undone)
    fb.ret(constant(I32, UNDONE))


def _write_receive(module: ModuleBuilder) -> None:
    fb = module.function(RECEIVE, I32, (PTR, I64, PTR, PTR))
    address, channel, description, table = fb.parameters
    context = Record(fb, Context, address)
    run, rank = Record(fb, RunState, context.load("run")), context.load("rank")
    undone = fb.new_block("undone")
    fb.guard(fb.icmp("ne", run.pointer, NULL), undone)
    with fb.while_loop(()) as search:
        with locked(fb, run):
            place = call(fb, "find_letter", run.pointer, channel, rank)
            is_there = fb.if_else(fb.icmp("ne", place, NULL))
            with is_there.then():
                is_there.yield_(call(fb, "take_letter", run.pointer, place, description))
            with is_there.otherwise():
                is_there.yield_(NULL)
        (letter,) = is_there.results
        with fb.if_(fb.icmp("ne", letter, NULL)):
            call(fb, "unpack_letter", letter, table)
            fb.ret(constant(I32, DONE))
        search.continue_while(fb.icmp("eq", place, NULL))
        fb.guard(fb.icmp("eq", call(fb, AWAIT, run.pointer, rank), MET), undone)
    fb.br(undone)
    fb.position_at(undone)
    fb.ret(constant(I32, UNDONE))


def _write_leave(module: ModuleBuilder) -> None:
    """A device is through, or has failed."""
    fb = module.function(LEAVE, VOID, (PTR, I64))
    run, own = _run_and_device(fb)
    with locked(fb, run):
        own.store("state", constant(I32, GONE))
        run.store("running", fb.sub(run.load("running"), 1))
        call(fb, "end_if_stuck", run.pointer)
    fb.ret()


def _write_stop(module: ModuleBuilder) -> None:
    """Ends the run: nobody waits any more."""
    fb = module.function(STOP, VOID, (PTR,))
    run = Record(fb, RunState, fb.parameters[0])
    with locked(fb, run):
        run.store("over", constant(I32, 1))
        with fb.loop(0, run.load("devices")) as rank:
            device = _device(fb, run, rank)
            is_waiting = fb.icmp("eq", device.load("state"), WAITING)
            with fb.if_(fb.and_(is_waiting, _is_first(fb, device.load("number")))):
                _let_go(fb, run, device, OVER)
    fb.ret()


def _write_open(module: ModuleBuilder) -> None:
    """Makes a run of the zeros behind an address; all its devices run."""
    fb = module.function(OPEN, VOID, (PTR, I64))
    run, count = Record(fb, RunState, fb.parameters[0]), fb.parameters[1]
    run.store("devices", count)
    run.store("running", count)
    call(fb, "open_mail", run.pointer)
    with fb.loop(0, count) as rank:
        make = module.declare("pthread_cond_init", I32, (PTR, PTR))
        fb.call(make, _device(fb, run, rank).address("awake"), NULL)
    fb.ret()


def _write_close(module: ModuleBuilder) -> None:
    """Gives back what the C library keeps for a run whose devices are all gone."""
    fb = module.function(CLOSE, VOID, (PTR,))
    run = Record(fb, RunState, fb.parameters[0])
    drop_letters(fb, run)
    with fb.loop(0, run.load("devices")) as rank:
        drop = module.declare("pthread_cond_destroy", I32, (PTR,))
        fb.call(drop, _device(fb, run, rank).address("awake"))
    fb.call(module.declare("pthread_mutex_destroy", I32, (PTR,)), run.address("lock"))
    fb.ret()


def _is_first(fb: FunctionBuilder, number: Value) -> Value:
    """Whether a meeting is the first of a pair."""
    return fb.icmp("eq", fb.and_(number, 1), 0)


def _let_go(fb: FunctionBuilder, run: Record, device: Record, outcome: int) -> None:
    """A device that waits goes on."""
    device.store("state", constant(I32, RUNNING))
    device.store("outcome", constant(I32, outcome))
    run.store("running", fb.add(run.load("running"), 1))
    fb.call(fb.module.declare("pthread_cond_signal", I32, (PTR,)), device.address("awake"))


def _run_and_device(fb: FunctionBuilder) -> tuple[Record, Record]:
    run = Record(fb, RunState, fb.parameters[0])
    return run, _device(fb, run, fb.parameters[1])


def _device(fb: FunctionBuilder, run: Record, rank: Value) -> Record:
    return Record.item(fb, DeviceState, run.end, rank)
