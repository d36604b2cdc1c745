import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from xlalite.clustering.op_groups import GROUPS
from xlalite.contrib.compiler.jit import experimental_jit_scope
from xlalite.framework.graph import dtypes
from xlalite.framework.graph.graph import Graph
from xlalite.framework.graph.op_spec import OP_SPECS, OpGroup, OpSpec
from xlalite.framework.graph.tensor import Tensor
from xlalite.hlo.errors import ClusteringError
from xlalite.ops.functions import array, control_flow, math as m, random_ops
from xlalite.ops.functions.array import placeholder
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.shape_rules import no_outputs

Make = Callable[..., Any]


def chain(x: Tensor, count: int) -> list[Tensor]:
    """Operations one after another."""
    made = [m.tanh(x)]
    for _ in range(count - 1):
        made.append(m.tanh(made[-1]))
    return made


def fed() -> Tensor:
    return placeholder(dtypes.float32, [None], "x")


def test_what_can_be_compiled_is_clustered(graph: Graph, cluster: Make) -> None:
    x = fed()
    made = chain(x, 4)
    (only,) = cluster([made[-1]], [x]).names
    assert only == {each.op.name for each in made}


def test_a_mark_keeps_an_operation_out(graph: Graph, cluster: Make) -> None:
    x = fed()
    with experimental_jit_scope(compile_ops=False):
        out = m.tanh(x)
    made = chain(out, 4)
    clustered = cluster([made[-1]], [x])
    assert clustered.names == [{each.op.name for each in made}]
    assert clustered.reason(out) == "marked with _XlaCompile=false"


def test_random_numbers_are_drawn_inside(graph: Graph, cluster: Make) -> None:
    drawn = random_ops.random_normal([3], seed=1)
    clustered = cluster([chain(drawn, 4)[-1]])
    (found,) = clustered.result.clusters
    assert "RandomStandardNormal" in {operation.type for operation in found.operations}
    assert [data.is_state for data in found.updates] == [True]


def test_the_order_of_rows_is_drawn_outside(graph: Graph, cluster: Make) -> None:
    drawn = random_ops.random_shuffle(fed(), seed=1)
    clustered = cluster([chain(drawn, 4)[-1]], [drawn.op.inputs[0]])
    assert clustered.reason(drawn).startswith("cannot be compiled: it draws from a stream of random numbers")


def test_strings_stay_outside(graph: Graph, cluster: Make) -> None:
    text = array.identity(constant(np.array("a", object), dtypes.string))
    reason = cluster([text]).reason(text)
    assert reason.startswith("cannot be compiled: element type string")


def test_a_body_that_cannot_be_compiled_keeps_its_loop_outside(graph: Graph, cluster: Make) -> None:
    x = fed()
    last = control_flow.while_loop(lambda v: m.reduce_sum(v) < 3, lambda v: random_ops.random_shuffle(v) + 1, [x])
    assert "RandomShuffle: it draws" in cluster([last], [x]).reason(last)


def test_an_operation_with_a_fed_output_stays_outside(graph: Graph, cluster: Make) -> None:
    x = placeholder(dtypes.float32, [4])
    top, bottom = array.split(x, 2)
    clustered = cluster([chain(top + bottom, 4)[-1]], [x, top])
    assert clustered.reason(bottom) == "an output of it is fed"
    assert len(clustered.names) == 1


def test_a_fed_tensor_cuts_the_graph(graph: Graph, cluster: Make) -> None:
    x = fed()
    made = chain(x, 8)
    clustered = cluster([made[-1]], [x, made[3]])
    assert clustered.names == [{each.op.name for each in made[4:]}]
    assert clustered.result.clusters[0].inputs == (made[3],)


def test_only_listed_operations_are_clustered(graph: Graph, cluster: Make) -> None:
    x = fed()
    made = chain(x, 4)
    out = m.exp(made[-1])
    clustered = cluster([out], [x], ops_to_cluster=("Tanh",))
    assert clustered.names == [{each.op.name for each in made}]
    assert clustered.reason(out) == "not among the operations to cluster"


def test_excluded_operations_are_not_clustered(graph: Graph, cluster: Make) -> None:
    x = fed()
    made = chain(x, 4)
    out = m.exp(made[-1])
    clustered = cluster([out], [x], cluster_exclude_ops=("Exp",))
    assert clustered.names == [{each.op.name for each in made}]
    assert clustered.reason(out) == "among the operations excluded from clusters"


def test_a_group_stands_for_its_operations(graph: Graph, cluster: Make) -> None:
    x = fed()
    made = chain(x, 4)
    out = m.reduce_sum(made[-1])
    clustered = cluster([out], [x], ops_to_cluster=("PW",))
    assert clustered.names == [{each.op.name for each in made}]
    assert cluster([out], [x], ops_to_cluster=("PW", "RED")).names == [{*(each.op.name for each in made), out.op.name}]


def test_groups_are_those_that_operations_declare() -> None:
    for group in OpGroup:
        assert GROUPS[group.value] == {name for name, spec in OP_SPECS.items() if spec.group is group}
    assert GROUPS["FUSIBLE"] == {name for name, spec in OP_SPECS.items() if spec.group is not None}


def test_groups_do_not_depend_on_what_was_imported_before() -> None:
    program = "from xlalite.clustering.op_groups import GROUPS; print(len(GROUPS['FUSIBLE']))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(done.stdout) == len(GROUPS["FUSIBLE"]) > 100


@pytest.mark.parametrize(
    ("groups", "name"),
    [
        ("PW", "Add"),
        ("RED", "Sum"),
        ("PWRED REDUCEWINDOW", "Softmax"),
        ("MISC", "Reshape"),
        ("BN", "FusedBatchNormGradV3"),
        ("SORT", "TopKV2"),
        ("REDUCEWINDOWPW", "LRNGrad"),
        ("REDUCEWINDOWPW", "BiasAddGrad"),
    ],
)
def test_an_operation_is_in_its_groups(groups: str, name: str) -> None:
    assert {found for found in GROUPS if name in GROUPS[found]} == {*groups.split(), "FUSIBLE"}


@pytest.mark.parametrize("name", ["MatMul", "Conv2D", "MaxPool"])
def test_products_and_windows_of_images_are_in_no_group(name: str) -> None:
    assert not any(name in members for members in GROUPS.values())


@pytest.mark.parametrize("decision", ["gradient", "group"])
def test_gradient_and_group_of_an_operation_must_be_decided(decision: str) -> None:
    decisions: dict[str, Any] = {"gradient": None, "group": None}
    del decisions[decision]
    with pytest.raises(TypeError, match=decision):
        OpSpec("NeverDeclared", no_outputs, **decisions)


@pytest.mark.parametrize("option", ["ops_to_cluster", "cluster_exclude_ops"])
def test_an_unknown_operation_type_is_an_error(graph: Graph, cluster: Make, option: str) -> None:
    with pytest.raises(ClusteringError, match=rf"{option}: 'MatMull' is neither .* did you mean 'MatMul'\?"):
        cluster([chain(fed(), 4)[-1]], **{option: ("MatMull",)})


def test_fuel_is_used_up_in_order(graph: Graph, cluster: Make) -> None:
    x = fed()
    made = chain(x, 6)
    clustered = cluster([made[-1]], [x], fuel=4)
    assert clustered.names == [{each.op.name for each in made[:4]}]
    assert clustered.reason(made[4]) == "the fuel for clustering is used up"


def test_operations_that_stay_outside_take_no_fuel(graph: Graph, cluster: Make) -> None:
    x = fed()
    made = chain(random_ops.random_shuffle(x), 4)
    assert cluster([made[-1]], [x], fuel=4).names == [{each.op.name for each in made}]


def test_with_the_jit_off_every_operation_has_that_reason(graph: Graph, cluster: Make) -> None:
    x = fed()
    made = chain(x, 6)
    clustered = cluster([made[-1]], [x], global_jit=False)
    assert clustered.result.parts == clustered.operations
    assert {clustered.reason(op) for op in clustered.operations} == {
        "the JIT is off and no operation of its cluster is marked"
    }
