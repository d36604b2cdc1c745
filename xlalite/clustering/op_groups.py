"""Names for sets of operation types, as lists of operations to cluster or to leave out may use them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from xlalite.framework.graph.op_spec import OP_SPECS
from xlalite.hlo.errors import ClusteringError


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ELEMENTWISE = _words(
    """
    Abs Acos Add AddN AddV2 Asin Atan Atan2 Bitcast BitwiseAnd BitwiseOr BitwiseXor Cast Ceil Conj Const Cos Cosh Div
    DivNoNan Elu Equal Erf Exp Expm1 Floor FloorDiv FloorMod Greater GreaterEqual Identity IdentityN Inv Invert IsFinite
    IsInf IsNan LeakyRelu LeftShift Less LessEqual Log Log1p LogicalAnd LogicalNot LogicalOr Maximum Minimum Mod Mul Neg
    NotEqual OnesLike Pow RealDiv Reciprocal Relu Relu6 ReluGrad RightShift Rint Round Rsqrt Select SelectV2 Selu
    Sigmoid SigmoidGrad Sign Sin Sinh Softplus Softsign Sqrt Square SquaredDifference StopGradient Sub Tan Tanh TanhGrad
    TruncateDiv TruncateMod Xlogy ZerosLike
    """
)
_REDUCTIONS = frozenset({"All", "Any", "Max", "Mean", "Min", "Prod", "Sum"})
_ELEMENTWISE_WITH_REDUCTION = _words(
    """
    ArgMax ArgMin BiasAdd BiasAddGrad L2Loss LogSoftmax Softmax SoftmaxCrossEntropyWithLogits
    SparseSoftmaxCrossEntropyWithLogits
    """
)
_MOVEMENT = _words(
    """
    BroadcastArgs BroadcastGradientArgs BroadcastTo ConcatV2 ExpandDims Fill GatherV2 InvertPermutation LinSpace NoOp
    OneHot Pack Pad PadV2 PlaceholderWithDefault PreventGradient Range Rank Reshape ReverseV2 Shape ShapeN Size Slice
    Split SplitV Squeeze StridedSlice StridedSliceGrad Tile Transpose Unpack UnsortedSegmentSum VariableShape _KeptShape
    """
)

GROUPS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "PW": _ELEMENTWISE,
        "RED": _REDUCTIONS,
        "PWRED": _ELEMENTWISE_WITH_REDUCTION,
        "MISC": _MOVEMENT,
        "FUSIBLE": _ELEMENTWISE | _REDUCTIONS | _ELEMENTWISE_WITH_REDUCTION | _MOVEMENT,
    }
)
"""Groups by name: PW works element by element, RED reduces, PWRED does both, MISC moves data and asks for shapes."""


def expand_names(names: Iterable[str], where: str) -> frozenset[str]:
    """The operation types that a list of types and groups stands for.

    Raises:
        ClusteringError: a name is neither; the nearest one is suggested.
    """
    found: set[str] = set()
    for name in names:
        if name not in GROUPS and name not in OP_SPECS:
            nearest = difflib.get_close_matches(name, [*GROUPS, *OP_SPECS], 1)
            hint = f"; did you mean {nearest[0]!r}?" if nearest else f"; the groups are {', '.join(GROUPS)}"
            raise ClusteringError(f"{where}: {name!r} is neither an operation type nor a group of them{hint}")
        found |= GROUPS.get(name, {name})
    return frozenset(found)
