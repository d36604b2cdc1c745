"""The machine code by which values go from one device to another, or to the host and back.

A letter is a copy of a value, with the number of a channel, who it is for, and a description: the sizes of its arrays
and its type as text. Letters wait in a list, each points to the next. Whoever wants one says how it is described; a
letter of another description stays where it is.

A device gets letters from others in the lock of the run (see `rendezvous_ir`). Letters between programs and a host are
in the host's mailbox.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from xlalite.backends.codegen.llvm import (
    I8,
    I32,
    I64,
    PTR,
    VOID,
    FunctionBuilder,
    ModuleBuilder,
    Operand,
    Value,
    constant,
)
from xlalite.backends.cpu.native.heap import PLAIN_ALIGNMENT_BYTES, allocate, release
from xlalite.backends.cpu.native.record import NULL, Record
from xlalite.backends.cpu.native.rendezvous import (
    HOST_AWAIT,
    HOST_CLOSE,
    HOST_OPEN,
    HOST_PUT,
    HOST_TAKE,
    LOCK,
    POP,
    RELEASE,
    UNLOCK,
    Context,
    Description,
    HostState,
    Letter,
    Mail,
)

DONE, UNDONE = range(2)

_MOMENT_NS = 50_000_000
_CLOCK_REALTIME = 0


def write_letters(module: ModuleBuilder) -> None:
    """Functions on lists of letters; who calls them holds the lock."""
    _write_open(module)
    _write_write(module)
    _write_post(module)
    _write_find(module)
    _write_remove(module)
    _write_unpack(module)
    _write_take(module)


def write_host(module: ModuleBuilder) -> None:
    """The mailbox of a host, and what Python does with any list of letters."""
    for name, word in ((LOCK, "lock"), (UNLOCK, "unlock")):
        fb = module.function(name, VOID, (PTR,))
        fb.call(module.declare(f"pthread_mutex_{word}", I32, (PTR,)), fb.parameters[0])
        fb.ret()
    fb = module.function(RELEASE, VOID, (PTR,))
    release(fb, fb.parameters[0])
    fb.ret()
    _write_pop(module)
    _write_host_open(module)
    _write_host_close(module)
    _write_host_put(module)
    _write_host_take(module)
    _write_host_await(module)


def _write_open(module: ModuleBuilder) -> None:
    fb = module.function("open_mail", VOID, (PTR,), linkage="internal")
    mail = Record(fb, Mail, fb.parameters[0])
    mail.store("first", NULL)
    mail.store("end", mail.address("first"))
    fb.call(module.declare("pthread_mutex_init", I32, (PTR, PTR)), mail.address("lock"), NULL)
    fb.ret()


def _write_write(module: ModuleBuilder) -> None:
    """A letter with copies of a table's arrays; null if there is no memory."""
    fb = module.function("write_letter", PTR, (I64, I64, PTR, PTR), linkage="internal")
    channel, target, description, table = fb.parameters
    described = Record(fb, Description, description)
    size = fb.add(described.load("size"), described.load("data_size"))
    letter = Record(fb, Letter, allocate(fb, fb.add(size, Letter.description.offset), PLAIN_ALIGNMENT_BYTES))
    with fb.if_(fb.icmp("ne", letter.pointer, NULL)):
        letter.store("next", NULL)
        letter.store("channel", channel)
        letter.store("target", target)
        fb.memcpy(letter.address("description"), description, described.load("size"))
        _each_array(fb, letter, table, fb.memcpy)
    fb.ret(letter.pointer)


def _write_post(module: ModuleBuilder) -> None:
    """Puts a letter behind the others."""
    fb = module.function("post_letter", VOID, (PTR, PTR), linkage="internal")
    mail, letter = Record(fb, Mail, fb.parameters[0]), Record(fb, Letter, fb.parameters[1])
    fb.store(letter.pointer, mail.load("end"))
    mail.store("end", letter.address("next"))
    fb.ret()


def _write_find(module: ModuleBuilder) -> None:
    """Where the pointer to the first letter of a channel and a target is; null if there is none."""
    fb = module.function("find_letter", PTR, (PTR, I64, I64), linkage="internal")
    mail, channel, target = Record(fb, Mail, fb.parameters[0]), *fb.parameters[1:]
    with fb.while_loop([mail.address("first")]) as search:
        (place,) = search.values
        letter = Record(fb, Letter, fb.load(PTR, place))
        with fb.if_(fb.icmp("eq", letter.pointer, NULL)):
            fb.ret(NULL)
        is_channel = fb.icmp("eq", letter.load("channel"), channel)
        search.continue_while(fb.icmp("eq", fb.and_(is_channel, fb.icmp("eq", letter.load("target"), target)), False))
        search.yield_(letter.address("next"))
    fb.ret(search.results[0])


def _write_remove(module: ModuleBuilder) -> None:
    """Takes the letter out of the list that a place points to."""
    fb = module.function("remove_letter", PTR, (PTR, PTR), linkage="internal")
    mail, place = Record(fb, Mail, fb.parameters[0]), fb.parameters[1]
    letter = Record(fb, Letter, fb.load(PTR, place))
    behind = letter.load("next")
    fb.store(behind, place)
    with fb.if_(fb.icmp("eq", behind, NULL)):
        mail.store("end", place)
    fb.ret(letter.pointer)


def _write_unpack(module: ModuleBuilder) -> None:
    """Copies the arrays of a letter to a table's, and drops the letter."""
    fb = module.function("unpack_letter", VOID, (PTR, PTR), linkage="internal")
    letter = Record(fb, Letter, fb.parameters[0])
    _each_array(fb, letter, fb.parameters[1], lambda inside, array, size: fb.memcpy(array, inside, size))
    release(fb, letter.pointer)
    fb.ret()


def _each_array(fb: FunctionBuilder, letter: Record, table: Value, copy: Callable[[Value, Value, Value], None]) -> None:
    """Copies between the arrays in a letter, which lie behind its description, and those of a table."""
    description = Record(fb, Description, letter.address("description"))
    begin = fb.gep(I8, description.pointer, description.load("size"))
    with fb.carried_loop(0, description.load("count"), 1, [begin]) as arrays:
        (inside,) = arrays.values
        size = fb.load(I64, fb.gep(I64, description.end, arrays.index))
        copy(inside, fb.load(PTR, fb.gep(PTR, table, arrays.index)), size)
        arrays.yield_(fb.gep(I8, inside, size))


def _write_take(module: ModuleBuilder) -> None:
    """Takes the letter out that a place points to if it is described so; else null."""
    fb = module.function("take_letter", PTR, (PTR, PTR, PTR), linkage="internal")
    mail, place, description = fb.parameters
    letter = Record(fb, Letter, fb.load(PTR, place))
    found = Record(fb, Description, letter.address("description"))
    size = Record(fb, Description, description).load("size")
    another = fb.new_block("another")
    fb.guard(fb.icmp("eq", found.load("size"), size), another)
    compare = module.declare("memcmp", I32, (PTR, PTR, I64))
    fb.guard(fb.icmp("eq", fb.call(compare, found.pointer, description, size), 0), another)
    fb.ret(call(fb, "remove_letter", mail, place))
    fb.position_at(another)
    fb.ret(NULL)


def _write_pop(module: ModuleBuilder) -> None:
    fb = module.function(POP, PTR, (PTR, I64, I64))
    mail = Record(fb, Mail, fb.parameters[0])
    with locked(fb, mail):
        place = call(fb, "find_letter", *fb.parameters)
        is_there = fb.if_else(fb.icmp("ne", place, NULL))
        with is_there.then():
            is_there.yield_(call(fb, "remove_letter", mail.pointer, place))
        with is_there.otherwise():
            is_there.yield_(NULL)
    fb.ret(is_there.results[0])


def _write_host_open(module: ModuleBuilder) -> None:
    fb = module.function(HOST_OPEN, VOID, (PTR,))
    host = Record(fb, HostState, fb.parameters[0])
    call(fb, "open_mail", host.pointer)
    fb.call(module.declare("pthread_cond_init", I32, (PTR, PTR)), host.address("arrived"), NULL)
    fb.ret()


def _write_host_close(module: ModuleBuilder) -> None:
    fb = module.function(HOST_CLOSE, VOID, (PTR,))
    host = Record(fb, HostState, fb.parameters[0])
    drop_letters(fb, host)
    fb.call(module.declare("pthread_cond_destroy", I32, (PTR,)), host.address("arrived"))
    fb.call(module.declare("pthread_mutex_destroy", I32, (PTR,)), host.address("lock"))
    fb.ret()


def drop_letters(fb: FunctionBuilder, mail: Record) -> None:
    """Drops all that nobody took."""
    with fb.while_loop([mail.load("first")]) as drop:
        letter = Record(fb, Letter, drop.values[0])
        drop.continue_while(fb.icmp("ne", letter.pointer, NULL))
        behind = letter.load("next")
        release(fb, letter.pointer)
        drop.yield_(behind)


def _write_host_put(module: ModuleBuilder) -> None:
    fb = module.function(HOST_PUT, I32, (PTR, I64, I64, PTR, PTR))
    host = Record(fb, HostState, Record(fb, Context, fb.parameters[0]).load("host"))
    undone = fb.new_block("undone")
    fb.guard(fb.icmp("ne", host.pointer, NULL), undone)
    letter = call(fb, "write_letter", *fb.parameters[1:])
    fb.guard(fb.icmp("ne", letter, NULL), undone)
    with locked(fb, host):
        call(fb, "post_letter", host.pointer, letter)
        fb.call(module.declare("pthread_cond_broadcast", I32, (PTR,)), host.address("arrived"))
    fb.ret(constant(I32, DONE))
    fb.position_at(undone)
    fb.ret(constant(I32, UNDONE))


def _write_host_take(module: ModuleBuilder) -> None:
    fb = module.function(HOST_TAKE, I32, (PTR, I64, I64, PTR, PTR))
    context, channel, target, description, table = fb.parameters
    host = Record(fb, HostState, Record(fb, Context, context).load("host"))
    undone = fb.new_block("undone")
    fb.guard(fb.icmp("ne", host.pointer, NULL), undone)
    with locked(fb, host):
        place = call(fb, "find_letter", host.pointer, channel, target)
        is_there = fb.if_else(fb.icmp("ne", place, NULL))
        with is_there.then():
            is_there.yield_(call(fb, "take_letter", host.pointer, place, description))
        with is_there.otherwise():
            is_there.yield_(NULL)
    (letter,) = is_there.results
    fb.guard(fb.icmp("ne", letter, NULL), undone)
    call(fb, "unpack_letter", letter, table)
    fb.ret(constant(I32, DONE))
    fb.position_at(undone)
    fb.ret(constant(I32, UNDONE))


def _write_host_await(module: ModuleBuilder) -> None:
    """Waits for a letter, but only a moment: who waits is to hear of signals, too."""
    fb = module.function(HOST_AWAIT, VOID, (PTR, I64, I64))
    host = Record(fb, HostState, fb.parameters[0])
    time = fb.alloca(I64, 2, align=8)
    fb.call(module.declare("clock_gettime", I32, (I32, PTR)), _CLOCK_REALTIME, time)
    nanoseconds = fb.add(fb.load(I64, fb.gep(I64, time, 1)), _MOMENT_NS)
    is_next = fb.icmp("sge", nanoseconds, 10**9)
    fb.store(fb.add(fb.load(I64, time), fb.zext(is_next, I64)), time)
    fb.store(fb.select(is_next, fb.sub(nanoseconds, 10**9), nanoseconds), fb.gep(I64, time, 1))
    wait = module.declare("pthread_cond_timedwait", I32, (PTR, PTR, PTR))
    with locked(fb, host), fb.while_loop([constant(I32, 0)]) as sleep:
        is_absent = fb.icmp("eq", call(fb, "find_letter", *fb.parameters), NULL)
        sleep.continue_while(fb.and_(is_absent, fb.icmp("eq", sleep.values[0], 0)))
        sleep.yield_(fb.call(wait, host.address("arrived"), host.address("lock"), time))
    fb.ret()


@contextmanager
def locked(fb: FunctionBuilder, mail: Record) -> Iterator[None]:
    """Code that has the lock of a record that begins as `Mail` does."""
    fb.call(fb.module.declare("pthread_mutex_lock", I32, (PTR,)), mail.address("lock"))
    yield
    unlock(fb, mail)


def unlock(fb: FunctionBuilder, mail: Record) -> None:
    """Gives the lock back."""
    fb.call(fb.module.declare("pthread_mutex_unlock", I32, (PTR,)), mail.address("lock"))


def call(fb: FunctionBuilder, name: str, *arguments: Operand) -> Value:
    """Calls a function of the module by name."""
    function = fb.module.lookup(name)
    assert function is not None, "written before what calls it"
    return fb.call(function, *arguments)
