"""Executables as machine code: their run from the buffers of the arguments to those of the results."""

from __future__ import annotations

from xlalite.backends.codegen.llvm import I1, I32, I64, PTR, Function, FunctionBuilder, Value
from xlalite.backends.cpu.native.pjrt.abi import ARGUMENTS, ErrorCode
from xlalite.backends.cpu.native.pjrt.records import Block, Buffer, Loaded, OutputSpec
from xlalite.backends.cpu.native.pjrt.writer import DELETED, NO_MEMORY, Writer, narrow
from xlalite.backends.cpu.native.record import NULL, Record, pointer_at

TAKE_DESTROYED, DONATE = "xlalite_pjrt_take_destroyed", "xlalite_pjrt_donate"
DONATED_TWICE = "an argument is donated and given a second time in the same call"
WRONG_ARGUMENTS = "the arguments are not those of the program: their number or the size of one differs"
_FAILED = "the program failed"


def write_execute_functions(writer: Writer) -> None:
    """Adds the functions to a module."""
    # jaxlib asks for these at each call.
    for name, field in (
        ("NumOutputs", "num_outputs"),
        ("NumReplicas", "num_replicas"),
        ("NumPartitions", "num_partitions"),
    ):
        with writer.function(f"Executable_{name}") as (fb, arguments):
            arguments.store("number", Record(fb, Loaded, arguments.load("executable")).load(field))
    with writer.function("LoadedExecutable_IsDeleted") as (fb, arguments):
        arguments.store("is_deleted", narrow(fb, Record(fb, Loaded, arguments.load("executable")).load("is_deleted")))
    with writer.function("LoadedExecutable_Delete") as (fb, arguments):
        Record(fb, Loaded, arguments.load("executable")).store("is_deleted", 1)
    _write_destroy(writer)
    _write_execute(writer, _write_execute_held(writer, _write_donate(writer), _write_contains(writer)))


def _write_destroy(writer: Writer) -> None:
    """A destructor may not enter Python: it leaves the executable in a list that Python empties later."""
    with writer.function("LoadedExecutable_Destroy") as (fb, arguments):
        loaded, shared = Record(fb, Loaded, arguments.load("executable")), writer.shared(fb)
        with fb.while_loop([fb.constant(I1, 1)]) as loop:
            loop.continue_while(loop.values[0])
            first = shared.atomic_load("destroyed", "acquire")
            loaded.store("next", first)
            loop.yield_(fb.not_(shared.compare_exchange("destroyed", first, loaded.pointer, "release")))
    with writer.helper(TAKE_DESTROYED, PTR, (), public=True) as fb:
        fb.ret(writer.shared(fb).atomic_rmw("xchg", "destroyed", NULL, "acquire"))


def _write_execute(writer: Writer, execute_held: Function) -> None:
    with writer.function("LoadedExecutable_Execute") as (fb, arguments):
        loaded, count = Record(fb, Loaded, arguments.load("executable")), arguments.load("num_arguments")
        programs = fb.mul(loaded.load("num_replicas"), loaded.load("num_partitions"))
        with fb.if_(fb.or_(fb.icmp("ne", programs, 1), fb.icmp("ne", arguments.load("num_devices"), 1))):
            fb.ret(fb.call_pointer(writer.shared(fb).load("execute_on_devices"), PTR, (arguments.pointer,)))
        with fb.if_(fb.icmp("ne", count, loaded.load("num_inputs"))):
            writer.return_error(fb, ErrorCode.INVALID_ARGUMENT, WRONG_ARGUMENTS)
        given, sizes = fb.load(PTR, arguments.load("argument_lists")), loaded.load("input_bytes")
        with fb.loop(0, count) as index:
            buffer = Record(fb, Buffer, pointer_at(fb, given, index))
            with fb.if_(fb.icmp("ne", buffer.load("size_bytes"), fb.load(I64, fb.gep(I64, sizes, index)))):
                _for_each(fb, given, index, writer.let_go)
                writer.return_error(fb, ErrorCode.INVALID_ARGUMENT, WRONG_ARGUMENTS)
            with fb.if_(fb.icmp("eq", fb.call(writer.hold, buffer.pointer), 0)):
                _for_each(fb, given, index, writer.let_go)
                writer.return_error(fb, ErrorCode.INVALID_ARGUMENT, DELETED)
        error = fb.call(execute_held, arguments.pointer)
        _for_each(fb, given, count, writer.let_go)
        fb.ret(error)


def _write_execute_held(writer: Writer, donate: Function, contains: Function) -> Function:
    """A run on one device whose arguments are held."""
    with writer.helper("execute_held", PTR, (PTR,)) as fb:
        arguments = Record(fb, ARGUMENTS["LoadedExecutable_Execute"], fb.parameters[0])
        loaded = Record(fb, Loaded, arguments.load("executable"))
        count, num_outputs = arguments.load("num_arguments"), loaded.load("num_outputs")
        options = Record(fb, ARGUMENTS["ExecuteOptions"], arguments.load("options"))
        given, specs = fb.load(PTR, arguments.load("argument_lists")), loaded.load("specs")
        results_list = fb.load(PTR, arguments.load("output_lists"))
        params, results = fb.stack_array(PTR, fb.add(count, 1)), fb.stack_array(PTR, fb.add(num_outputs, 1))
        with fb.loop(0, count) as index:
            fb.store(Record(fb, Buffer, pointer_at(fb, given, index)).load("data"), fb.gep(PTR, params, index))
        with fb.loop(0, num_outputs) as index:
            spec = Record.item(fb, OutputSpec, specs, index)
            alias = fb.sext(spec.load("alias"), I64)
            is_donated = fb.if_else(fb.icmp("sge", alias, 0))
            with is_donated.then():
                with fb.if_(fb.icmp("ne", Record(fb, Buffer, pointer_at(fb, given, alias)).load("is_deleted"), 0)):
                    _for_each(fb, results_list, index, writer.drop_buffer)
                    writer.return_error(fb, ErrorCode.INVALID_ARGUMENT, DONATED_TWICE)
                is_kept = fb.call(contains, options.load("kept"), options.load("num_kept"), alias)
                is_donated.yield_(fb.call(donate, pointer_at(fb, given, alias), is_kept))
            with is_donated.otherwise():
                is_donated.yield_(fb.call(writer.new_block, spec.load("size_bytes")))
            (block,) = is_donated.results
            with fb.if_(fb.icmp("eq", block, NULL)):
                _for_each(fb, results_list, index, writer.drop_buffer)
                writer.return_error(fb, ErrorCode.INTERNAL, NO_MEMORY)
            data = Record(fb, Block, block).load("data")
            fb.store(data, fb.gep(PTR, results, index))
            with fb.if_(fb.icmp("sge", alias, 0)):
                fb.store(data, fb.gep(PTR, params, alias))
            described = (spec.load("size_bytes"), spec.load("type"), spec.load("rank"), spec.load("dims"))
            buffer = fb.call(writer.new_buffer, block, *described, spec.load("memory"))
            with fb.if_(fb.icmp("eq", buffer, NULL)):
                _for_each(fb, results_list, index, writer.drop_buffer)
                writer.return_error(fb, ErrorCode.INTERNAL, NO_MEMORY)
            fb.store(buffer, fb.gep(PTR, results_list, index))
        with fb.if_(loaded.is_set("is_donated")):
            _refuse_donated(writer, fb, loaded, given, results_list, count)
        status = fb.call_pointer(writer.shared(fb).load("run"), I32, (loaded.load("call"), params, results))
        with fb.if_(fb.icmp("ne", status, 0)):
            _for_each(fb, results_list, num_outputs, writer.drop_buffer)
            explain = writer.shared(fb).load("explain_failure")
            error = fb.call_pointer(explain, PTR, (loaded.pointer, fb.sext(status, I64)))
            with fb.if_(fb.icmp("eq", error, NULL)):  # Python cannot say why; the results are gone all the same
                writer.return_error(fb, ErrorCode.INTERNAL, _FAILED)
            fb.ret(error)
        events = arguments.load("complete_events")
        with fb.if_(fb.icmp("ne", events, NULL)):
            fb.store(writer.ready_event(fb), events)
        fb.ret(NULL)
    return fb.function


def _refuse_donated(
    writer: Writer, fb: FunctionBuilder, loaded: Record, given: Value, results_list: Value, count: Value
) -> None:
    """No argument that is not donated may be one that is, and none may be donated twice."""
    donated = loaded.load("is_donated")
    with fb.loop(0, count) as index:
        is_gone = fb.icmp("ne", Record(fb, Buffer, pointer_at(fb, given, index)).load("is_deleted"), 0)
        with fb.if_(fb.and_(is_gone, fb.icmp("eq", fb.load(I32, fb.gep(I32, donated, index)), 0))):
            _for_each(fb, results_list, loaded.load("num_outputs"), writer.drop_buffer)
            writer.return_error(fb, ErrorCode.INVALID_ARGUMENT, DONATED_TWICE)


def _for_each(fb: FunctionBuilder, buffers: Value, count: Value, function: Function) -> None:
    with fb.loop(0, count) as index:
        fb.call(function, pointer_at(fb, buffers, index))


def _write_donate(writer: Writer) -> Function:
    """The block of an argument whose memory a result shares: a copy where the host or somebody else needs it.

    The buffer and the call hold the argument, and let go of it in the end; more holds are others'.
    """
    with writer.helper(DONATE, PTR, (PTR, I1), public=True) as fb:
        address, is_kept = fb.parameters
        buffer = Record(fb, Buffer, address)
        block = Record(fb, Block, buffer.load("block"))
        with fb.if_(fb.not_(is_kept)):
            before = buffer.atomic_rmw("xchg", "is_deleted", 1)
            is_sole = fb.icmp("eq", buffer.atomic_load("holds"), 2)
            is_unshared = fb.icmp("eq", block.atomic_load("references", "acquire"), 1)
            is_own = fb.icmp("eq", block.load("host_event"), NULL)
            with fb.if_(fb.icmp("eq", before, 0)):
                fb.call(writer.let_go, address)
                with fb.if_(fb.and_(is_sole, fb.and_(is_unshared, is_own))):
                    block.atomic_rmw("add", "references", 1, "monotonic")
                    fb.ret(block.pointer)
        size = buffer.load("size_bytes")
        copy = fb.call(writer.new_block, size)
        with fb.if_(fb.icmp("ne", copy, NULL)):
            fb.memcpy(Record(fb, Block, copy).load("data"), buffer.load("data"), size)
        fb.ret(copy)
    return fb.function


def _write_contains(writer: Writer) -> Function:
    with writer.helper("contains", I1, (PTR, I64, I64)) as fb:
        numbers, count, wanted = fb.parameters
        with fb.loop(0, count) as index, fb.if_(fb.icmp("eq", fb.load(I64, fb.gep(I64, numbers, index)), wanted)):
            fb.ret(1)
        fb.ret(0)
    return fb.function
