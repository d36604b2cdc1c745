"""Functions, regions, captures, constants, annotations: what becomes of the structure of a text."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from xlalite.hlo.errors import ParseError
from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.ir.module import InputOutputAlias
from xlalite.hlo.text import parse
from xlalite.hlo.verification.verifier import verify


def constant(text: str) -> np.ndarray:
    kind = text.rpartition(" : ")[2]
    return np.asarray(
        evaluate(parse(f"func.func @main() -> {kind} {{ %c = stablehlo.constant {text} return %c : {kind} }}"))
    )


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("dense<1.5> : tensor<f32>", np.float32(1.5)),
        ("dense<7> : tensor<2x2xi8>", np.full((2, 2), 7, np.int8)),
        ("dense<[[1, 2], [3, -4]]> : tensor<2x2xi64>", np.array([[1, 2], [3, -4]])),
        ("dense<[true, false]> : tensor<2xi1>", np.array([True, False])),
        ("dense<[0xFF800000, -0.0]> : tensor<2xf32>", np.array([-np.inf, -0.0], np.float32)),
        ("dense<[0x7F80, 1.0]> : tensor<2xbf16>", np.array([np.inf, 1], ml_dtypes.bfloat16)),
        ("dense<[1, -8]> : tensor<2xi4>", np.array([1, -8], ml_dtypes.int4)),
        ("dense<[255, 0]> : tensor<2xui8>", np.array([255, 0], np.uint8)),
        ("dense<0x7E> : tensor<f8E4M3FN>", np.array(448, ml_dtypes.float8_e4m3fn)),
        ("dense<(1.0,-2.0)> : tensor<complex<f32>>", np.complex64(1 - 2j)),
        (
            "dense<[(1.0,2.0), (3.0,0x7F800000)]> : tensor<2xcomplex<f32>>",
            np.array([1 + 2j, complex(3, np.inf)], np.complex64),
        ),
        ("dense<> : tensor<0x3xf32>", np.zeros((0, 3), np.float32)),
        ('dense<"0x0000803F00000040"> : tensor<2xf32>', np.array([1, 2], np.float32)),
        ('dense<"0x0000803F"> : tensor<3xf32>', np.ones(3, np.float32)),
        ('dense<"0x0D"> : tensor<5xi1>', np.array([1, 0, 1, 1, 0], bool)),
        ('dense<"0x0100010100"> : tensor<5xi1>', np.array([1, 0, 1, 1, 0], bool)),
        ('dense<"0x803F0040"> : tensor<2xbf16>', np.array([1, 2], ml_dtypes.bfloat16)),
        ('dense<"0x0000803F00000040"> : tensor<1xcomplex<f32>>', np.array([1 + 2j], np.complex64)),
        ('dense<"0x01F8"> : tensor<2xi4>', np.array([1, -8], ml_dtypes.int4)),
    ],
)
def test_constants_are_read(text: str, wanted: np.ndarray) -> None:
    found = constant(text)
    assert (found.dtype, found.shape) == (np.asarray(wanted).dtype, np.asarray(wanted).shape)
    assert found.tobytes() == np.asarray(wanted).tobytes()


def test_a_huge_splat_stays_one_number() -> None:
    module = parse(
        "func.func @main() -> tensor<1048576x1048576xf32> {\n"
        "  %c = stablehlo.constant dense<1.0> : tensor<1048576x1048576xf32>\n"
        "  return %c : tensor<1048576x1048576xf32>\n}"
    )
    assert module.entry_computation.root.opcode == "broadcast"


def test_functions_call_each_other_and_main_is_the_entry() -> None:
    module = parse(
        """
        // a comment
        module @net attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 4 : i32} {
          func.func private @both(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
            %0 = stablehlo.negate %x : tensor<2xf32>
            return %0, %x : tensor<2xf32>, tensor<2xf32>
          }
          func.func private @unused(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }
          func.func public @main(%arg0: tensor<2xf32> {mhlo.sharding = "{replicated}", jax.buffer_donor = true},
              %arg1: tensor<2xf32> {tf.aliasing_output = 1 : i32, mhlo.layout_mode = "default"})
              -> (tensor<2xf32> {jax.result_info = "a"}, tensor<2xf32>) {
            %0:2 = call @both(%arg0) : (tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>)
            %1:2 = func.call @both(%0#1) : (tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>)
            %2 = stablehlo.add %1#0, %0#0 {mhlo.sharding = "{maximal device=1}",
                                           mhlo.frontend_attributes = {k = "v"}} : tensor<2xf32>
            return %2, %arg1 : tensor<2xf32>, tensor<2xf32>
          }
        }
        """
    )
    verify(module)
    assert module.name == "net"
    assert (module.config.num_partitions, module.config.replica_count) == (2, 4)
    assert module.config.input_output_alias == (InputOutputAlias((1,), 1),)
    assert module.config.buffer_donors == ((0, ()),)
    assert [computation.name for computation in module.computations()] == ["both", "main"]
    entry = module.entry_computation
    assert entry.parameters[0].sharding == "{replicated}"
    (add,) = [i for i in entry.instructions if i.opcode == "add"]
    assert (add.sharding, add.frontend_attributes) == ("{maximal device=1}", (("k", "v"),))
    x = np.array([1, 2], np.float32)
    first, second = evaluate(module, x, x * 5)
    np.testing.assert_array_equal(first, -2 * x)
    np.testing.assert_array_equal(second, 5 * x)


def test_loops_carry_what_they_use_from_outside() -> None:
    module = parse(
        """
        func.func @main(%n: tensor<i32>, %x: tensor<f32>) -> tensor<f32> {
          %zero = stablehlo.constant dense<0> : tensor<i32>
          %one = stablehlo.constant dense<1> : tensor<i32>
          %y = stablehlo.add %x, %x : tensor<f32>
          %r:2 = stablehlo.while(%i = %zero, %acc = %x) : tensor<i32>, tensor<f32> attributes {k = 1 : i32}
          cond {
            %c = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
            stablehlo.return %c : tensor<i1>
          } do {
            %j = stablehlo.add %i, %one : tensor<i32>
            %big = stablehlo.compare GT, %j, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
            %k = "stablehlo.if"(%big) ({
              stablehlo.return %acc : tensor<f32>
            }, {
              %s = stablehlo.add %acc, %y : tensor<f32>
              stablehlo.return %s : tensor<f32>
            }) : (tensor<i1>) -> tensor<f32>
            stablehlo.return %j, %k : tensor<i32>, tensor<f32>
          }
          return %r#1 : tensor<f32>
        }
        """
    )
    verify(module)
    (loop,) = [i for i in module.entry_computation.instructions if i.opcode == "while"]
    # The counter, the sum, n and y; the constants are repeated inside instead.
    assert loop.shape.text() == "(s32[], f32[], s32[], f32[])"
    assert float(np.asarray(evaluate(module, np.int32(5), np.float32(1.5)))) == 1.5 + 5 * 3


def test_branches_without_operands_and_results_of_several_values_are_read() -> None:
    text = """
        func.func @main(%i: tensor<i32>) -> (tensor<i32>, tensor<f32>) {
          %r:2 = "stablehlo.case"(%i) ({
            %a = stablehlo.constant dense<10> : tensor<i32>
            %b = stablehlo.constant dense<1.0> : tensor<f32>
            stablehlo.return %a, %b : tensor<i32>, tensor<f32>
          }, {
            %b = stablehlo.constant dense<2.0> : tensor<f32>
            stablehlo.return %i, %b : tensor<i32>, tensor<f32>
          }) : (tensor<i32>) -> (tensor<i32>, tensor<f32>)
          return %r#0, %r#1 : tensor<i32>, tensor<f32>
        }
        """
    module = parse(text)
    verify(module)
    assert [float(np.asarray(v)) for v in evaluate(module, np.int32(0))] == [10, 1]
    assert [float(np.asarray(v)) for v in evaluate(module, np.int32(9))] == [9, 2]


def test_reducers_may_use_constants_from_outside() -> None:
    text = """
        func.func @main(%x: tensor<4xf32>, %two: tensor<f32>) -> tensor<f32> {
          %zero = stablehlo.constant dense<0.0> : tensor<f32>
          %half = stablehlo.constant dense<0.5> : tensor<f32>
          %r = stablehlo.reduce(%x init: %zero) across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
           reducer(%a: tensor<f32>, %b: tensor<f32>) {
            %m = stablehlo.maximum %a, %half : tensor<f32>
            %s = stablehlo.maximum %m, %b : tensor<f32>
            stablehlo.return %s : tensor<f32>
          }
          return %r : tensor<f32>
        }
        """
    module = parse(text)
    verify(module)
    assert float(np.asarray(evaluate(module, np.zeros(4, np.float32), np.float32(2)))) == 0.5


def test_select_and_scatter_and_sort_have_regions() -> None:
    module = parse(
        """
        func.func @main(%x: tensor<4xf32>, %s: tensor<2xf32>, %z: tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>) {
          %0 = "stablehlo.select_and_scatter"(%x, %s, %z) <{window_dimensions = array<i64: 2>,
              window_strides = array<i64: 2>}> ({
          ^bb0(%a: tensor<f32>, %b: tensor<f32>):
            %c = stablehlo.compare GE, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
            stablehlo.return %c : tensor<i1>
          }, {
          ^bb0(%a: tensor<f32>, %b: tensor<f32>):
            %c = stablehlo.add %a, %b : tensor<f32>
            stablehlo.return %c : tensor<f32>
          }) : (tensor<4xf32>, tensor<2xf32>, tensor<f32>) -> tensor<4xf32>
          %1 = "stablehlo.sort"(%x) <{dimension = -1 : i64, is_stable = false}> ({
          ^bb0(%a: tensor<f32>, %b: tensor<f32>):
            %c = stablehlo.compare LT, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
            stablehlo.return %c : tensor<i1>
          }) : (tensor<4xf32>) -> tensor<4xf32>
          return %0, %1 : tensor<4xf32>, tensor<4xf32>
        }
        """
    )
    verify(module)
    x = np.array([3, 1, 2, 5], np.float32)
    scattered, ordered = evaluate(module, x, np.array([10, 20], np.float32), np.float32(0))
    np.testing.assert_array_equal(scattered, [10, 0, 0, 20])
    np.testing.assert_array_equal(ordered, [1, 2, 3, 5])


def test_composites_call_their_decomposition() -> None:
    module = parse(
        """
        func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
          %0 = stablehlo.composite "my.op" %x {composite_attributes = {n = 1 : i32}, decomposition = @twice,
                                               version = 1 : i32} : (tensor<2xf32>) -> tensor<2xf32>
          return %0 : tensor<2xf32>
        }
        func.func private @twice(%x: tensor<2xf32>) -> tensor<2xf32> {
          %0 = stablehlo.add %x, %x : tensor<2xf32>
          return %0 : tensor<2xf32>
        }
        """
    )
    root = module.entry_computation.root
    assert root.attrs.is_composite
    assert dict(root.frontend_attributes) == {"composite.name": "my.op", "composite.version": "1"}
    np.testing.assert_array_equal(evaluate(module, np.ones(2, np.float32)), [2, 2])


def test_locations_of_all_kinds_become_metadata() -> None:
    module = parse(
        """
        #loc1 = loc("x")
        module @m {
          func.func @main(%x: tensor<f32> loc("x")) -> tensor<f32> {
            %0 = stablehlo.sine %x : tensor<f32> loc(#loc5)
            %1 = stablehlo.cosine %0 : tensor<f32> loc(fused<"meta">["jit(f)/cos", "b.py":7:1])
            %2 = stablehlo.tanh %1 : tensor<f32> loc(unknown)
            %3 = stablehlo.abs %2 : tensor<f32> loc(#loop)
            return %3 : tensor<f32> loc(#loc)
          } loc(#loc)
        } loc(#loc)
        #loc = loc(unknown)
        #loop = loc(#loop)
        #loc3 = loc("f"("a.py":12:3 to :9))
        #loc4 = loc(callsite(#loc3 at "main.py":1:1))
        #loc5 = loc("jit(f)/sin"(#loc4))
        """
    )
    found = {i.opcode: i.metadata for i in module.entry_computation.instructions}
    assert (found["sine"].op_name, found["sine"].source_file, found["sine"].source_line) == ("jit(f)/sin", "a.py", 12)
    assert (found["cosine"].op_name, found["cosine"].source_file, found["cosine"].source_line) == (
        "jit(f)/cos",
        "b.py",
        7,
    )
    assert found["tanh"].op_name == found["abs"].op_name == ""


def test_names_that_hlo_cannot_hold_are_changed() -> None:
    module = parse('module @"jit(<f>)" { func.func @main(%0: tensor<f32>) -> tensor<f32> { return %0 : tensor<f32> } }')
    assert str(parse(str(module))) == str(module)


SHARDED = """module @m attributes {mhlo.num_partitions = COUNT : i32} {
  sdy.mesh @mesh = <["x"=COUNT]>
  func.func public @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>},
                         %b: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.add %a, %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : tensor<4xf32>
    %1 = sdy.sharding_constraint %0 <@mesh, [{"x"}]> : tensor<4xf32>
    %2:2 = sdy.manual_computation(%1, %b)
        in_shardings=[<@mesh, [{"x"}]>, <@mesh, [{"x"}]>]
        out_shardings=[<@mesh, [{"x"}]>, <@mesh, [{"x"}]>] manual_axes={"x"}
        (%c: tensor<SIZExf32>, %d: tensor<SIZExf32>) {
      %3 = stablehlo.multiply %c, %d : tensor<SIZExf32>
      sdy.return %3, %c : tensor<SIZExf32>, tensor<SIZExf32>
    } : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    %4 = stablehlo.subtract %2#0, %2#1 : tensor<4xf32>
    return %4 : tensor<4xf32>
  }
}
"""


def test_shardings_become_annotations() -> None:
    module = parse(SHARDED.replace("COUNT", "2").replace("SIZE", "2"))
    assert module.config.frontend_attributes == (("xla.sdy.meshes", '{mesh = #sdy.mesh<["x"=2]>}'),)
    entry = module.entry_computation
    assert entry.parameters[0].frontend_attributes == (("xla.sdy.sharding", '#sdy.sharding<@mesh, [{"x"}]>'),)
    calls = [one for one in entry.instructions if one.opcode == "custom-call"]
    targets = ["Sharding", "xla.sdy.GlobalToLocalShape", "xla.sdy.LocalToGlobalShape"]
    assert [call.attrs.custom_call_target for call in calls] == targets
    (shared, cut, joined), each = calls, '<@mesh, [{"x"}]>'
    assert shared.operand(0).frontend_attributes == (("xla.sdy.sharding", "#sdy.sharding_per_value<[<@mesh, [{}]>]>"),)
    assert shared.frontend_attributes == (("xla.sdy.sharding", f"#sdy.sharding_per_value<[{each}]>"),)
    assert [shape.dims for shape in cut.shape.elements] == [(2,), (2,)]
    assert [shape.dims for shape in joined.shape.elements] == [(4,), (4,)]
    axes, both = ("xla.sdy.manual_axes", '#sdy<manual_axes{"x"}>'), f"#sdy.sharding_per_value<[{each}, {each}]>"
    assert cut.frontend_attributes == (("xla.sdy.in_shardings", both), axes)
    assert joined.frontend_attributes == (axes, ("xla.sdy.out_shardings", both))
    written = parse(module.to_stablehlo())
    assert written.config.frontend_attributes == module.config.frontend_attributes
    for one, other in zip(written.instructions(), module.instructions(), strict=True):
        assert one.opcode == "get-tuple-element" or one.frontend_attributes == other.frontend_attributes


def test_wishes_about_the_order_of_operations_mean_nothing() -> None:
    module = parse("""
    func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
      %b = stablehlo.add %a, %a : tensor<2xf32>
      stablehlo.custom_call @control_dep(%a, %b) {has_side_effect = true} : (tensor<2xf32>, tensor<2xf32>) -> ()
      return %b : tensor<2xf32>
    }""")
    assert [one.opcode for one in module.entry_computation.instructions] == ["parameter", "add"]


def test_shardings_mean_nothing_on_one_device() -> None:
    module = parse(SHARDED.replace("COUNT", "1").replace("SIZE", "4"))
    a, b = np.arange(4, dtype=np.float32), np.full(4, 3, np.float32)
    np.testing.assert_array_equal(evaluate(module, a, b), (a + b) * b - (a + b))
    targets = [one.attrs.custom_call_target for one in module.instructions() if one.opcode == "custom-call"]
    assert "Sharding" not in targets


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("(%1, %b)", "(%1)", "takes 1 operands, its region 2"),
        ("sdy.return %3, %c : tensor<2xf32>, tensor", "sdy.return %3 : tensor", "has 2 results, its region 1"),
        ("in_shardings", "shardings", "expected 'in_shardings'"),
        (
            '= sdy.sharding_constraint %0 <@mesh, [{"x"}]>',
            "= sdy.sharding_constraint %0",
            "needs the attribute sharding",
        ),
        ("%c, %d :", "%c, %b :", "comes from outside"),
        ("@mesh = <", "@mesh = >", "'>' closes nothing"),
    ],
)
def test_wrong_shardings_are_refused(old: str, new: str, message: str) -> None:
    text = SHARDED.replace("COUNT", "2").replace("SIZE", "2")
    assert old in text
    with pytest.raises(ParseError, match=message):
        parse(text.replace(old, new))
