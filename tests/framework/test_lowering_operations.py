import numpy as np
import pytest

from xlalite.framework.graph.errors import InternalError, InvalidArgumentError
from xlalite.framework.graph.graph import Graph
from xlalite.framework.graph.op_spec import OP_SPECS
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor, handle_data_of
from xlalite.framework.meaning.lowering import (
    Argument,
    ConstantArgument,
    ParameterArgument,
    VariableArgument,
    lower_operations,
)
from xlalite.framework.meaning.static_value import constant_value
from xlalite.hlo.errors import LoweringError
from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape
from xlalite.ops.functions import array as a, math as m
from xlalite.ops.helpers.constant import constant
from xlalite.ops.training.variable import Variable


def inside(graph: Graph, *outside: Tensor) -> list[Operation]:
    """All operations but those that make the given tensors."""
    return [op for op in graph.get_operations() if op not in {tensor.op for tensor in outside}]


def opcodes(lowered: object) -> list[str]:
    return [each.opcode for each in lowered.module.entry_computation.instructions]  # type: ignore[attr-defined]


def test_parameters_follow_the_arguments_and_results_the_outputs(graph: Graph) -> None:
    x, y = a.placeholder(np.float32, [None], "x"), a.placeholder(np.float32, [None], "y")
    total, product = x + y, x * y
    lowered = lower_operations(
        inside(graph, x, y),
        [ParameterArgument(y, Shape.array(DType.F32, (3,))), ParameterArgument(x, Shape.array(DType.F32, (3,)))],
        [product, total],
        "cluster_7",
    )
    assert lowered.module.name == "cluster_7"
    assert [p.tensor for p in lowered.parameters if isinstance(p, ParameterArgument)] == [y, x]
    found = evaluate(lowered.module, np.float32([1, 2, 3]), np.float32([4, 5, 6]))
    np.testing.assert_array_equal(found, [[4, 10, 18], [5, 7, 9]])


def test_instructions_say_which_operation_and_line_they_come_from(graph: Graph) -> None:
    x = a.placeholder(np.float32, [2])
    y = m.tanh(x, name="layer/act")
    lowered = lower_operations([y.op], [ParameterArgument(x, Shape.array(DType.F32, (2,)))], [y])
    (tanh,) = [each for each in lowered.module.entry_computation.instructions if each.opcode == "tanh"]
    metadata = tanh.metadata
    assert (metadata.op_type, metadata.op_name, metadata.source_file) == ("Tanh", "layer/act", __file__)
    assert metadata.source_line == y.op.traceback.line


def test_shapes_of_values_inside_are_constants(graph: Graph) -> None:
    x = a.placeholder(np.float32, [None, 4])
    flat = a.reshape(m.tanh(x), [a.shape(x)[0] * 2, -1])
    lowered = lower_operations(inside(graph, x), [ParameterArgument(x, Shape.array(DType.F32, (3, 4)))], [flat])
    assert opcodes(lowered) == ["parameter", "tanh", "reshape", "tuple"]
    assert lowered.module.entry_computation.root.shape.elements[0].dims == (6, 2)


def test_constant_arguments_give_values_and_no_parameters(graph: Graph) -> None:
    x, sizes = a.placeholder(np.float32, [None]), a.placeholder(np.int32, [2])
    y = a.reshape(x, sizes)
    arguments: list[Argument] = [
        ConstantArgument(sizes, np.int32([2, 3])),
        ParameterArgument(x, Shape.array(DType.F32, (6,))),
    ]
    lowered = lower_operations([y.op], arguments, [y])
    assert opcodes(lowered) == ["parameter", "reshape", "tuple"]


def test_a_value_that_must_be_known_is_traced_to_its_source(graph: Graph) -> None:
    x, n = a.placeholder(np.float32, [None]), a.placeholder(np.int32, [], "count")
    y = a.reshape(x, [n + 1, 2])
    arguments = [ParameterArgument(x, Shape.array(DType.F32, (6,))), ParameterArgument(n, Shape.array(DType.S32))]
    with pytest.raises(LoweringError) as caught:
        lower_operations(inside(graph, x, n), arguments, [y])
    text = str(caught.value)
    assert "Reshape 'Reshape'" in text
    assert "input 1 (shape) must be known when the operation is compiled" in text
    assert "run-time value of Placeholder 'count' ()" in text
    assert "<- add:0 <- count:0" in text


def test_a_fed_constant_is_a_run_time_value(graph: Graph) -> None:
    x = constant([1.0, 2.0])
    y = x * 2
    lowered = lower_operations([y.op], [ParameterArgument(x, Shape.array(DType.F32, (2,)))], [y])
    np.testing.assert_array_equal(evaluate(lowered.module, np.float32([5, 6]))[0], [10, 12])


def test_one_of_several_outputs_may_come_from_outside(graph: Graph) -> None:
    x = a.placeholder(np.float32, [2])
    first, second = a.unstack(x)
    total = first * 10 + second
    vector, scalar = Shape.array(DType.F32, (2,)), Shape.array(DType.F32)
    arguments = [ParameterArgument(x, vector), ParameterArgument(first, scalar)]
    lowered = lower_operations(inside(graph, x), arguments, [total])
    assert evaluate(lowered.module, np.float32([1, 2]), np.float32(5))[0] == 52


def test_updated_variables_follow_the_outputs(graph: Graph) -> None:
    v, w = Variable([1.0, 2.0], name="v"), Variable(3.0, name="w")
    update = v.assign_add([1.0, 1.0], read_value=False)
    doubled = w.value() * 2
    scalar, vector = Shape.array(DType.F32), Shape.array(DType.F32, (2,))
    arguments = [
        VariableArgument(handle_data_of(w.handle), scalar),
        VariableArgument(handle_data_of(v.handle), vector),
    ]
    operations = [doubled.op.inputs[0].op, *inside(graph)[-1:], doubled.op.inputs[1].op, update, doubled.op]
    lowered = lower_operations(list(dict.fromkeys(operations)), arguments, [doubled])
    (change,) = lowered.updates
    assert (change.data.name, change.output_index, change.parameter_number) == ("v", 1, 1)
    assert lowered.output_count == 1
    found = evaluate(lowered.module, np.float32(3), np.float32([1, 2]))
    assert found[0] == 6
    np.testing.assert_array_equal(found[1], [2, 3])


def test_a_variable_without_value_may_be_written_but_needs_no_parameter(graph: Graph) -> None:
    v = Variable([1.0, 2.0], name="v")
    lowered = lower_operations([v.initializer], [VariableArgument(handle_data_of(v.handle), None)], [])
    assert lowered.parameters == ()
    assert lowered.updates[0].parameter_number is None
    np.testing.assert_array_equal(evaluate(lowered.module)[0], [1, 2])


def test_undeclared_variables_and_missing_arguments_are_errors(graph: Graph) -> None:
    v, x = Variable(1.0, name="v"), a.placeholder(np.float32, [2])
    read = v.value()
    with pytest.raises(LoweringError, match="variable 'v' is used but is not among the arguments"):
        lower_operations([read.op], [], [read])
    y = x + 1
    with pytest.raises(LoweringError, match="neither computed here nor an argument"):
        lower_operations([y.op], [], [y])


def test_concrete_shapes_that_do_not_fit_name_the_operation(graph: Graph) -> None:
    x, y = a.placeholder(np.float32, [None]), a.placeholder(np.float32, [None])
    z = x + y
    arguments = [ParameterArgument(x, Shape.array(DType.F32, (2,))), ParameterArgument(y, Shape.array(DType.F32, (3,)))]
    with pytest.raises(
        InvalidArgumentError, match=r"Incompatible shapes .*: sizes 2 and 3 differ\n  in AddV2 'add' .*made at "
    ):
        lower_operations([z.op], arguments, [z])


def test_what_a_lowering_gives_must_fit_what_was_inferred(graph: Graph) -> None:
    x = a.placeholder(np.float32, [None])
    y = m.tanh(x)
    y.set_shape([5])
    with pytest.raises(InternalError, match=r"lowering gave f32\[2\] for 'Tanh:0', expected float32\(5,\)"):
        lower_operations([y.op], [ParameterArgument(x, Shape.array(DType.F32, (2,)))], [y])


def test_only_what_is_needed_is_lowered(graph: Graph) -> None:
    x = a.placeholder(np.float32, [2])
    y = m.tanh(x)
    m.exp(x)
    lowered = lower_operations(inside(graph, x), [ParameterArgument(x, Shape.array(DType.F32, (2,)))], [y])
    assert "exponential" not in opcodes(lowered)


def test_long_chains_lower_in_linear_time_without_recursion(graph: Graph) -> None:
    x = a.placeholder(np.float32, [])
    y = x
    for _ in range(3000):
        y = m.negative(y)
    lowered = lower_operations(inside(graph, x), [ParameterArgument(x, Shape.array(DType.F32))], [y])
    assert len(opcodes(lowered)) == 3002


@pytest.mark.parametrize("name", sorted(OP_SPECS))
def test_declarations_are_complete(name: str) -> None:
    spec = OP_SPECS[name]
    assert spec.lower is not None or spec.host_kernel is not None
    assert spec.is_compilable or spec.why_host


def test_the_default_of_what_may_be_fed_is_no_known_value(graph: Graph) -> None:
    assert constant_value(a.placeholder_with_default(False, [])) is None
