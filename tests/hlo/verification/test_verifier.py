"""Every rule of the verifier: a module that keeps it, and one that breaks it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from xlalite.hlo.building.create import create
from xlalite.hlo.errors import VerificationError
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule, InputOutputAlias
from xlalite.hlo.ops import OPS
from xlalite.hlo.text import parse
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Layout, ProgramShape, Shape
from xlalite.hlo.verification.verifier import verify

TEXT = """HloModule m
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
ENTRY e {
  x = f32[2,3] parameter(0)
  y = (f32[4], f32[2]) parameter(1)
  z = f32[] constant(0)
  n = f32[2,3] negate(x)
  r = f32[2] reduce(n, z), dimensions={1}, to_apply=add
  g = f32[2] get-tuple-element(y), index=1
  ROOT s = f32[2] add(r, g)
}
"""
F32 = Shape.array(DType.F32)
VECTOR = Shape.array(DType.F32, (2,))


@pytest.fixture
def module() -> HloModule:
    module = parse(TEXT)
    verify(module)
    verify(module, layout_sensitive=True)
    return module


def refuse(module: HloModule, message: str, *, layout_sensitive: bool = False) -> str:
    with pytest.raises(VerificationError, match=message) as caught:
        verify(module, layout_sensitive=layout_sensitive)
    assert str(caught.value).startswith("verifying module ")
    return str(caught.value)


def corrupt(owner: HloInstruction | HloComputation, field: str, value: object) -> None:
    """Sets what no method lets anybody set: the verifier does not trust those who keep the invariants."""
    assert hasattr(owner, f"_{field}")
    setattr(owner, f"_{field}", value)


def test_a_wrong_shape_is_found_and_quoted(module: HloModule) -> None:
    module.entry_computation.find("n").shape = Shape.array(DType.F32, (3, 2))
    message = refuse(module, r"found shape f32\[3,2\], expected f32\[2,3\]")
    assert "%n = f32[3,2]{1,0} negate(%x) (in computation e)" in message


def test_all_that_the_instructions_of_a_computation_break_is_reported(module: HloModule) -> None:
    entry = module.entry_computation
    entry.find("n").shape = Shape.array(DType.F32, (2, 4))
    entry.find("r").called_computations = ()
    lines = refuse(module, "found shape").splitlines()
    assert [line.split(": ")[0] for line in lines] == [f"verifying module {module.name}"] * 2
    assert lines[0].endswith("found shape f32[2,4], expected f32[2,3]")
    assert lines[1].endswith("it calls 0 computations, expected 1")


def test_the_result_type_of_arithmetic_is_checked(module: HloModule) -> None:
    module.entry_computation.root.shape = Shape.array(DType.F64, (2,))
    refuse(module, r"found shape f64\[2\], expected f32\[2\]")


def test_attributes_of_another_operation_are_refused(module: HloModule) -> None:
    module.entry_computation.find("n").attrs = module.entry_computation.find("r").attrs
    refuse(module, "found attributes ReduceAttrs, expected NoAttrs")


def test_wrong_attributes_are_refused(module: HloModule) -> None:
    reduce = module.entry_computation.find("r")
    reduce.attrs = reduce.with_attrs(dimensions=(5,))
    refuse(module, "dimensions has 5, which is not a dimension of rank 2")


def test_a_missing_computation_is_refused(module: HloModule) -> None:
    module.entry_computation.find("r").called_computations = ()
    refuse(module, "it calls 0 computations, expected 1")


def test_a_called_computation_of_another_module_is_refused(module: HloModule) -> None:
    module.entry_computation.find("r").called_computations = (parse(TEXT).find("add"),)
    refuse(module, "computation add is called but not in the module")


def test_a_wrong_signature_is_refused(module: HloModule) -> None:
    other = module.add(
        parse("add2 { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] add(a, b) }")
        .find("add2")
        .clone("add2")
    )
    module.entry_computation.find("r").called_computations = (other,)
    refuse(
        module, r"to_apply has the signature \(s32\[\], s32\[\]\) -> s32\[\], expected \(f32\[\], f32\[\]\) -> f32\[\]"
    )


def test_operands_must_be_in_the_same_computation(module: HloModule) -> None:
    entry = module.entry_computation
    stranger = create("constant", attrs=entry.find("z").attrs)
    entry.find("r").set_operands((entry.find("n"), stranger))
    refuse(module, "its operand %constant is in no computation")


def test_users_must_be_right(module: HloModule) -> None:
    entry = module.entry_computation
    corrupt(entry.find("n"), "users", {})
    refuse(module, r"its users are recorded as \[\], found \[%r\]")


def test_a_cycle_is_found(module: HloModule) -> None:
    entry = module.entry_computation
    entry.find("n").set_operands((entry.find("n"),))
    refuse(module, "depends on itself")


def test_a_cycle_through_control_dependencies_is_found(module: HloModule) -> None:
    entry = module.entry_computation
    entry.find("n").add_control_predecessor(entry.root)
    refuse(module, "depends on itself")


def test_control_predecessors_must_be_in_the_same_computation(module: HloModule) -> None:
    module.entry_computation.root.add_control_predecessor(module.find("add").root)
    refuse(module, "its control predecessor %c is in add")


def test_a_computation_without_root_is_refused(module: HloModule) -> None:
    corrupt(module.entry_computation, "root", None)
    refuse(module, "there is no root")


def test_the_root_must_belong_to_the_computation(module: HloModule) -> None:
    corrupt(module.entry_computation, "root", module.find("add").root)
    refuse(module, "the root %c belongs elsewhere")


def test_equal_names_are_refused(module: HloModule) -> None:
    module.entry_computation.find("n").name = "x"
    refuse(module, "two instructions are called %x")


@pytest.mark.parametrize("name", ["", "a b", "a,b", "é", "x="])
def test_names_must_be_writable(module: HloModule, name: str) -> None:
    module.entry_computation.find("n").name = name
    refuse(module, "cannot be written as HLO text")


def test_parameters_are_numbered_without_gaps(module: HloModule) -> None:
    entry = module.entry_computation
    first, second = entry.parameters
    corrupt(entry, "parameters", {0: first, 2: second})
    second.attrs = second.with_attrs(number=2)
    refuse(module, r"found parameter numbers \[0, 2\], expected 0, 1, ... without gaps")


def test_computations_that_call_each_other_are_refused(module: HloModule) -> None:
    add = module.find("add")
    call = add.add(HloInstruction(OPS["call"], F32, (), None, (add,)))
    call.attrs = OPS["call"].attrs()
    refuse(module, "calls itself")


def test_nobody_calls_the_entry() -> None:
    module = parse(
        "e { ROOT x = f32[] parameter(0) }\nmain { y = f32[] parameter(0) ROOT c = f32[] call(y), to_apply=e }"
    )
    verify(module)
    module.set_entry(module.find("e"))
    refuse(module, "it calls the entry computation e")


def test_a_fusion_owns_its_body() -> None:
    text = """f { a = f32[] parameter(0)
      ROOT b = f32[] negate(a) }
    ENTRY e { x = f32[] parameter(0)
      y = f32[] fusion(x), kind=kLoop, calls=f
      ROOT z = f32[] OPCODE }"""
    verify(parse(text.replace("OPCODE", "negate(y)")))
    refuse(parse(text.replace("OPCODE", "fusion(y), kind=kLoop, calls=f")), "also called by %y; a fusion owns its body")
    refuse(parse(text.replace("OPCODE", "call(y), to_apply=f")), "a fusion owns its body")


def test_a_schedule_runs_operands_first(module: HloModule) -> None:
    module.update_config(is_scheduled=True)
    verify(module)
    entry = module.entry_computation
    order = list(entry.instructions)
    order[3], order[4] = order[4], order[3]
    entry.set_order(order)
    refuse(module, "the schedule runs it before %n, which it depends on")


def test_a_schedule_obeys_control_dependencies(module: HloModule) -> None:
    module.update_config(is_scheduled=True)
    entry = module.entry_computation
    entry.find("n").add_control_predecessor(entry.find("g"))
    refuse(module, "the schedule runs it before %g, which it depends on")


ALIAS = InputOutputAlias((), 1, (1,))


@pytest.mark.parametrize(
    ("aliases", "message"),
    [
        ((replace(ALIAS, parameter_number=2),), "there is no parameter 2, the entry has 2"),
        ((replace(ALIAS, parameter_number=-1),), "there is no parameter -1"),
        ((replace(ALIAS, parameter_index=(2,)),), r"\[2\] does not exist"),
        ((replace(ALIAS, parameter_index=(0,)),), r"found f32\[2\] for a parameter of f32\[4\]"),
        ((replace(ALIAS, output_index=(0,)),), r"\[0\] does not exist"),
        ((ALIAS, ALIAS), "it is given twice"),
    ],
)
def test_aliases_name_buffers_that_fit(module: HloModule, aliases: tuple[InputOutputAlias, ...], message: str) -> None:
    module.update_config(input_output_alias=(ALIAS,), buffer_donors=((1, (0,)),))
    verify(module)
    module.update_config(input_output_alias=aliases)
    refuse(module, message)


def test_donated_buffers_exist_and_are_not_aliased(module: HloModule) -> None:
    module.update_config(input_output_alias=(ALIAS,), buffer_donors=((1, (1,)),))
    refuse(module, "aliased too")
    module.update_config(buffer_donors=((3, ()),))
    refuse(module, "there is no parameter 3")


def test_the_entry_layout_matches_the_entry(module: HloModule) -> None:
    signature = module.entry_computation.program_shape
    module.update_config(entry_layout=ProgramShape(signature.parameters[:1], signature.result))
    refuse(module, "entry layout: found 1 parameters, expected 2")
    module.update_config(entry_layout=ProgramShape(signature.parameters, F32))
    refuse(module, r"entry layout: found f32\[\], expected f32\[2\]")
    transposed = replace(signature.parameters[0], layout=Layout((0, 1)))
    module.update_config(entry_layout=ProgramShape((transposed, signature.parameters[1]), signature.result))
    verify(module)
    refuse(module, "entry layout", layout_sensitive=True)


@pytest.mark.parametrize("field", ["replica_count", "num_partitions"])
def test_counts_are_positive(module: HloModule, field: str) -> None:
    module.update_config(**{field: 0})
    refuse(module, f"{field} is 0")


def test_layouts_matter_only_when_asked() -> None:
    text = "ENTRY e { x = f32[2,3]{0,1} parameter(0)\n ROOT n = f32[2,3]{1,0} OPCODE(x) }"
    verify(parse(text.replace("OPCODE", "negate")))
    refuse(parse(text.replace("OPCODE", "negate")), "they must have the same order", layout_sensitive=True)
    verify(parse(text.replace("OPCODE", "copy")), layout_sensitive=True)
    tuple_text = "ENTRY e { x = f32[2,3]{0,1} parameter(0)\n ROOT n = (f32[2,3]{1,0}) tuple(x) }"
    verify(parse(tuple_text))
    refuse(parse(tuple_text), "found layout", layout_sensitive=True)


def test_a_module_without_entry_is_refused() -> None:
    refuse(HloModule("empty"), "no entry computation")


def test_a_large_module_takes_linear_time() -> None:
    lines = "\n".join(f"n{i} = f32[] add(p, c)" for i in range(20_000))
    module = parse(f"ENTRY e {{ p = f32[] parameter(0)\n c = f32[] constant(1)\n{lines}\n}}")
    verify(module)


ASYNC = """HloModule m
neg { a = f32[4] parameter(0)
  ROOT b = f32[4] negate(a) }
ENTRY e { x = f32[4] parameter(0)
  t = token[] after-all()
  s = ((f32[4]), f32[4]) async-start(x), calls=neg
  u = ((f32[4]), f32[4]) async-update(s)
  d = f32[4] async-done(u)
  c = (f32[4], f32[4], u32[]) copy-start(x)
  k = (f32[4], f32[4], u32[]) tuple(x, x, c#2)
  w = f32[4] copy-done(c)
  send = (f32[4], u32[], token[]) send(x, t), channel_id=1
  sent = token[] send-done(send), channel_id=1
  recv = (f32[4], u32[], token[]) recv(t), channel_id=1
  got = (f32[4], token[]) recv-done(recv), channel_id=1
  g = f32[8] all-gather(x), channel_id=2, dimensions={0}
  ROOT r = f32[4] add(d, w) }
"""


def test_what_starts_is_ended_once_by_its_partner() -> None:
    verify(parse(ASYNC))
    refuse(parse(ASYNC.replace("copy-done(c)", "copy-done(k)")), "operand 0 is %k, a tuple, expected copy-start")
    refuse(parse(ASYNC.replace("  c =", "  d2 = f32[4] async-done(s)\n  c =")), "%s is ended twice")


def test_a_channel_has_one_purpose() -> None:
    refuse(parse(ASYNC.replace("channel_id=2", "channel_id=1")), "channel 1 is used by %send for send")
