import threading

import numpy as np
import pytest

from xlalite.framework.graph.default_graph import get_default_graph, reset_default_graph
from xlalite.framework.graph.default_session import default_session
from xlalite.framework.graph.errors import (
    ElementTypeError,
    FinalizedGraphError,
    GraphError,
    MissingElementError,
    NotFoundError,
)
from xlalite.framework.graph.graph import Graph
from xlalite.hlo.errors import ShapeError, XlaliteError
from xlalite.ops.functions import array as a, math as m, nn
from xlalite.ops.functions.control_flow import control_dependencies, group, name_scope, no_op
from xlalite.ops.functions.random_ops import random_normal
from xlalite.ops.helpers.constant import constant


def test_operations_are_named_by_type_and_number(graph: Graph) -> None:
    x = constant(1.0)
    names = [m.add(x, x).op.name, m.add(x, x).op.name, (x + x).op.name, m.add(x, x, name="mine").op.name]
    assert names == ["Add", "Add_1", "add_2", "mine"]


def test_names_differ_in_more_than_case(graph: Graph) -> None:
    assert graph.unique_name("Foo") == "Foo"
    assert graph.unique_name("foo") == "foo_1"
    assert graph.unique_name("foo_1") == "foo_1_1"


def test_name_scopes_nest_are_made_unique_and_can_be_entered_again(graph: Graph) -> None:
    with name_scope("layer") as scope:
        assert scope == "layer/"
        assert constant(1.0).op.name == "layer/Const"
        with name_scope("inner"):
            assert constant(1.0).op.name == "layer/inner/Const"
        with name_scope(None):
            assert constant(1.0).op.name == "Const"
    with name_scope("layer") as again:
        assert again == "layer_1/"
    with name_scope("layer/"):
        assert constant(1.0).op.name == "layer/Const_1"
    with pytest.raises(GraphError, match="not a valid"), name_scope("a b"):
        pass
    with pytest.raises(GraphError, match="'bad name'"):
        constant(1.0, name="bad name")


def test_elements_are_found_by_name(graph: Graph) -> None:
    x = constant(1.0, name="x")
    assert graph.get_tensor_by_name("x:0") is x
    assert graph.get_operation_by_name("x") is x.op
    assert graph.as_graph_element(x) is x
    with pytest.raises(MissingElementError, match="no operation named 'y'"):
        graph.get_operation_by_name("y")
    with pytest.raises(KeyError, match="operation 'x' has 1 outputs"):
        graph.get_tensor_by_name("x:1")
    with pytest.raises(GraphError, match="'x' names an Operation"):
        graph.get_tensor_by_name("x")
    with pytest.raises(GraphError, match="'x:²' is not a tensor name"):
        graph.get_tensor_by_name("x:²")
    with pytest.raises(GraphError, match="another graph"):
        Graph().as_graph_element(x)
    with pytest.raises(TypeError, match="3"):
        graph.as_graph_element(3)


def test_control_dependencies_accumulate_skip_what_is_implied_and_can_be_lifted(graph: Graph) -> None:
    x, y = constant(1.0), constant(2.0)
    with control_dependencies([x]):
        first = no_op()
        with control_dependencies([y]):
            assert no_op().control_inputs == (x.op, y.op)
        with control_dependencies(None):
            assert no_op().control_inputs == ()
        inside = a.identity(y)
        assert inside.op.control_inputs == (x.op,)
        assert a.identity(inside).op.control_inputs == ()
        assert a.identity(x).op.control_inputs == ()
    assert first.control_inputs == (x.op,)
    assert first in x.op.control_outputs
    assert group(x, [y.op, first]).control_inputs == (x.op, y.op, first)
    with pytest.raises(TypeError, match="control input"), control_dependencies([3]):
        pass


def test_devices_merge_field_by_field(graph: Graph) -> None:
    with graph.device("/job:worker/cpu:0"):
        assert constant(1.0).op.device == "/job:worker/device:CPU:0"
        with graph.device("/gpu:1"):
            assert constant(1.0).op.device == "/job:worker/device:GPU:1"
        with graph.device(None):
            assert constant(1.0).op.device == ""
        with graph.device(lambda op: "/task:3" if op.type == "Const" else None):
            assert constant(1.0).op.device == "/job:worker/task:3/device:CPU:0"
            assert no_op().device == "/job:worker/device:CPU:0"
    with pytest.raises(GraphError, match="cannot read 'cpu:x'"), graph.device("/cpu:x"):
        pass


def test_attribute_scopes_annotate_operations(graph: Graph) -> None:
    with graph.attribute_scope({"_a": 1, "_b": lambda op: op.type == "Const" or None}):
        assert constant(1.0).op.get_attr("_b") is True
        assert dict(no_op().attrs) == {"_a": 1}
        with graph.attribute_scope({"_a": None}):
            assert "_a" not in no_op().attrs
    with pytest.raises(GraphError, match="no attribute '_a'"):
        constant(1.0).op.get_attr("_a")
    with pytest.raises(GraphError, match="cannot change"):
        constant(1.0).op.set_attr("value", 3)


def test_collections_keep_order_and_filter_by_scope(graph: Graph) -> None:
    x, y = constant(1.0, name="a/x"), constant(2.0, name="b/y")
    graph.add_to_collections(["c", "d", "c"], x)
    graph.add_to_collection("c", y)
    assert graph.get_collection("c") == [x, y]
    assert graph.get_collection("c", "b/") == [y]
    assert graph.get_all_collection_keys() == ["c", "d"]
    graph.get_collection("c").clear()
    assert graph.get_collection("c") == [x, y]


def test_a_finalized_graph_refuses_changes(graph: Graph) -> None:
    before = graph.version
    constant(1.0)
    assert graph.version == before + 1
    graph.finalize()
    with pytest.raises(FinalizedGraphError):
        constant(1.0)


def test_tensors_of_two_graphs_cannot_meet(graph: Graph) -> None:
    x = constant(1.0)
    with Graph().as_default():
        y = constant(1.0)
        with pytest.raises(GraphError, match="another graph"):
            m.add(x, y)
        assert m.negative(x).graph is graph


def test_default_graphs_belong_to_threads(graph: Graph) -> None:
    seen: list[Graph] = []
    thread = threading.Thread(target=lambda: seen.append(get_default_graph()))
    thread.start()
    thread.join()
    assert seen[0] is not graph
    with pytest.raises(GraphError, match="reset_default_graph"):
        reset_default_graph()


def test_operations_can_be_created_from_several_threads(graph: Graph) -> None:
    def make() -> None:
        with graph.as_default():
            for _ in range(50):
                constant(1.0)

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    operations = graph.get_operations()
    assert len({op.name for op in operations}) == 200
    assert [op.id for op in operations] == list(range(200))


def test_shape_errors_show_operation_shapes_and_the_users_line(graph: Graph) -> None:
    x = a.placeholder(np.float32, [None, 3])
    w = constant(np.zeros((4, 2), np.float32))
    with pytest.raises(ShapeError) as caught:
        m.matmul(x, w)
    text = str(caught.value)
    assert "contracting sizes differ: a (?, 3) has 3 columns, b (4, 2) has 4 rows" in text
    assert "MatMul 'MatMul' (float32(?, 3), float32(4, 2)), made at " in text
    assert f"{__file__}:" in text
    assert isinstance(caught.value, XlaliteError)
    assert len(graph.get_operations()) == 2


@pytest.mark.parametrize("sizes", [[1 << 62], [1 << 40, 1 << 40], [1 << 62, 1 << 62]])
def test_shapes_that_cannot_be_addressed_are_errors_of_their_operation(graph: Graph, sizes: list[int]) -> None:
    for make in (a.zeros, lambda sizes: a.fill(sizes, 1.0), random_normal):
        with pytest.raises(ShapeError, match=r"has more than \d+ elements\n  in "):
            make(sizes)


@pytest.mark.parametrize("limit", [float("nan"), float("inf"), 1e30])
def test_ranges_without_end_are_errors(graph: Graph, limit: float) -> None:
    with pytest.raises(ShapeError, match="a range from 0"):
        m.range(0.0, limit, 1.0)


@pytest.mark.parametrize("count", [0, -1])
def test_a_split_has_parts(graph: Graph, count: int) -> None:
    with pytest.raises(ShapeError, match="num_split must be positive"):
        a.split(a.zeros([2]), count)


def test_type_errors_name_what_is_allowed(graph: Graph) -> None:
    x = constant([1, 2])
    with pytest.raises(ElementTypeError, match=r"logits 'Const:0' has element type int32; expected one of bfloat16, "):
        nn.softmax(x)
    with pytest.raises(NotFoundError, match="'Nonsense'"):
        graph.create_op("Nonsense")


def test_tensors_refuse_truth_length_and_iteration_with_advice(graph: Graph) -> None:
    x = a.placeholder(np.float32, [None, 2], name="x")
    with pytest.raises(TypeError, match="no truth value"):
        bool(x)
    with pytest.raises(TypeError, match="cannot be iterated"):
        list(x)
    with pytest.raises(TypeError, match=r"no len\(\)"):
        len(x)
    with pytest.raises(TypeError, match="no value while the graph is built"):
        np.asarray(x)
    assert [t.shape.as_list() for t in constant([[1.0, 2.0]])] == [[2]]
    assert x != constant(1.0)
    assert len({x, x}) == 1


def test_set_shape_adds_knowledge_and_refuses_contradictions(graph: Graph) -> None:
    x = a.placeholder(np.float32, [None, 2], name="x")
    x.set_shape([5, None])
    assert x.shape == [5, 2]
    with pytest.raises(ShapeError, match="set_shape on 'x:0'"):
        x.set_shape([4, 2])


def test_traceback_is_the_users_line(graph: Graph) -> None:
    x = constant(1.0)
    location = (x + 1).op.traceback
    assert location.file == __file__
    assert location.function == "test_traceback_is_the_users_line"


def test_eval_and_run_use_the_default_session(graph: Graph) -> None:
    class Recorder:
        def __init__(self, graph: Graph) -> None:
            self.graph = graph

        def run(self, fetches: object, feed_dict: object = None) -> object:
            return fetches, feed_dict

    x = constant(1.0)
    with pytest.raises(GraphError, match="no default session"):
        x.eval()
    with default_session(Recorder(graph)):
        assert x.eval({1: 2}) == (x, {1: 2})
    with default_session(Recorder(Graph())), pytest.raises(GraphError, match="default session's graph"):
        x.op.run()


def test_feeding_can_be_prevented(graph: Graph) -> None:
    x = constant(1.0)
    assert graph.is_feedable(x)
    graph.prevent_feeding(x)
    assert not graph.is_feedable(x)


def test_consumers_are_listed_once(graph: Graph) -> None:
    x = constant(1.0)
    y = x * x
    assert x.consumers() == [y.op]
