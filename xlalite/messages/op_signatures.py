"""What TensorFlow's operations take and give, as far as their attributes say it again.

TensorFlow reads no node without the attributes that its declaration names, although most follow from the inputs:
`ConcatV2` has `N` for how many there are and `T` and `Tidx` for their types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor

# Inputs > outputs: operations. An input is the attribute with its type, `_` for a type that is always the same,
# `N*T` for so many of one type, `T*` for any number of any types.
_SIGNATURES: Final = """
T > T: Abs Acos Acosh Asin Asinh Atan Atanh AvgPool AvgPool3D BesselI0e BesselI1e BiasAddGrad Ceil CheckNumerics
    Cholesky Conj Cos Cosh DataFormatDimMap DataFormatVecPermute DepthToSpace Diag DiagPart Digamma Elu Erf Erfc
    Erfinv Exp Expm1 ExtractImagePatches Floor HSVToRGB Identity Inv Invert InvertPermutation L2Loss LRN LeakyRelu
    Lgamma Log Log1p LogSoftmax MatrixDeterminant MatrixDiag MatrixDiagPart MatrixInverse MaxPool MaxPool3D Ndtri Neg
    OnesLike PreventGradient RGBToHSV RandomShuffle Reciprocal Relu Relu6 Rint Round Rsqrt Selu Sigmoid Sign Sin Sinh
    Softmax Softplus Softsign SpaceToDepth Sqrt Square Squeeze StopGradient Tan Tanh XlaSort ZerosLike
T > _: AsString Bucketize EncodePng IsFinite IsInf IsNan PopulationCount Rank Where
_ > T: ResourceCountUpTo
N*T > T: AddN Einsum Pack
N*_ > _: MergeSummary StringJoin
S T > T: RandomGamma
T > T T: LogMatrixDeterminant Qr SelfAdjointEigV2
T > T _: TopK
T T > T: Add AddV2 Atan2 BatchMatMulV2 BiasAdd BiasAddV1 BitwiseAnd BitwiseOr BitwiseXor BroadcastArgs Conv2D Conv3D
    DepthwiseConv2dNative Dilation2D Div DivNoNan EluGrad FloorDiv FloorMod Igamma IgammaGradA Igammac InvGrad
    LeakyReluGrad LeftShift MatMul MatrixSetDiag MatrixSolve MatrixTriangularSolve Maximum Minimum Mod Mul MulNoNan
    NextAfter Polygamma Pow RandomGammaGrad RealDiv ReciprocalGrad Relu6Grad ReluGrad RightShift RsqrtGrad SeluGrad
    SigmoidGrad SoftplusGrad SoftsignGrad SqrtGrad SquaredDifference Sub TanhGrad TridiagonalSolve TruncateDiv
    TruncateMod Xdivy XlaDot XlaReduce Xlog1py Xlogy Zeta
T T > _: ApproximateEqual Equal Greater GreaterEqual Less LessEqual NotEqual
T _ > T: AdjustContrastv2 AdjustHue AdjustSaturation NthElement ResizeNearestNeighbor ResizeNearestNeighborGrad
T _ > _: ResizeArea ResizeBicubic ResizeBilinear
T* > T*: IdentityN
_ T > T: AvgPool3DGrad AvgPoolGrad ResizeBicubicGrad ResizeBilinearGrad StackPushV2
_ T > _: HistogramSummary ImageSummary InTopK ScalarSummary
_ T* > : Assert
 > dtype: Const Placeholder
T > Tout: Angle ComplexAbs Imag Real
T > type: Bitcast
T U* > T: Print
_ T T > : ResourceApplyGradientDescent
K V > K V: XlaKeyValueSort
T > T T T: Svd
T > dtype: RandomStandardNormal RandomUniform TruncatedNormal
T > num*T: Unpack
T T > T T: BroadcastGradientArgs SoftmaxCrossEntropyWithLogits
T T T > T: Betainc ClipByValue Dilation2DBackpropFilter Dilation2DBackpropInput LRNGrad MaxPool3DGradGrad MaxPoolGrad
    MaxPoolGradGrad QuantizeAndDequantizeV2 QuantizeAndDequantizeV4
T T _ > T: MatrixSetDiagV2 MatrixSetDiagV3
T _ T > T: Conv2DBackpropFilter Conv3DBackpropFilterV2 DepthwiseConv2dNativeBackpropFilter MatrixDiagPartV2
    MatrixDiagPartV3
T _ _ > T: MaxPoolV2
T* _ > T*: XlaVariadicSort
_ > dtype: DecodeImage DecodePng ReadVariableOp
_ T T > T: Conv2DBackpropInput DepthwiseConv2dNativeBackpropInput Select SelectV2
_ T T > _: InTopKV2 Substr
_ T _ > _: TensorSummaryV2
_ _ T > T: Bincount
T T > Tout: Complex
T Tdim > T: ExpandDims
T Tidx > T: BatchToSpace BroadcastTo Cumprod Cumsum CumulativeLogsumexp Max Mean Min Prod ReverseV2 Sum
T Tlen > T: ReverseSequence
T* T* > T*: XlaVariadicReduceV2
_ Tidx > _: All Any
_ _ T T > : ResourceApplyAdagrad
_ dtype > : AssignAddVariableOp AssignSubVariableOp AssignVariableOp
N*_ N*T > T: DynamicStitch ParallelDynamicStitch
S R > dtype: RandomPoissonV2
SrcT > DstT: Cast
T T T _ > T: QuantizeAndDequantizeV3
T Tperm > T: Transpose
T _ _ _ > _: CropAndResize
_ T _ _ > _: CropAndResizeGradBoxes
_ _ _ _ > T: CropAndResizeGradImage
N*T Tidx > T: ConcatV2
T > out_type: Shape Size
T T Tidx > T: LinSpace
T Tshape > T: Reshape
TI _ T T > T: OneHot
Tin* > Tout*: PyFuncStateless
_ > out_type: DecodeRaw StringToNumber VariableShape
_ T T T T > : ResourceApplyProximalGradientDescent
_ _ T T T > : ResourceApplyAdagradV2 ResourceApplyKerasMomentum ResourceApplyMomentum
T > T Targmax: MaxPoolWithArgmax
T > T out_idx: Unique
T T T _ _ > T: MaxPoolGradGradV2 MaxPoolGradV2
T T _ > dtype: HistogramFixedWidth
T _ > _ _ _ T: CTCGreedyDecoder
T _ _ > dtype: Dequantize
_ _ _ > T _ _: QuantizeV2
T _ _ > T T _: SampleDistortedBoundingBoxV2
T _ _ _ > T T: CTCLoss
T _ _ _ T > T: MatrixDiagV2 MatrixDiagV3
_ > elem_type: StackPopV2
dtype > dtype: PlaceholderWithDefault
T T > out_type: LowerBound UpperBound
T Tindices > T: SegmentMax SegmentMean SegmentMin SegmentProd SegmentSum
Tshape T T > T: Conv3DBackpropInputV2
_ > shape_type: TensorListElementShape
_ _ T T T T > : ResourceApplyProximalAdagrad
T T > T out_idx: ListDiff
T T T T > T T T: QuantizeAndDequantizeV4Grad
T T Targmax > T: MaxPoolGradGradWithArgmax MaxPoolGradWithArgmax
T Tlabels > T T: SparseSoftmaxCrossEntropyWithLogits
T Tpaddings > T: MirrorPad MirrorPadGrad Pad SpaceToBatch
T Tseed > dtype: StatelessRandomNormal StatelessRandomUniform StatelessRandomUniformFullInt StatelessTruncatedNormal
Tseed > _ _: StatelessRandomGetKeyCounter
Tseed > _ _ _: StatelessRandomGetKeyCounterAlg
Tshape _ _ _ > dtype: StatelessRandomNormalV2 StatelessRandomUniformFullIntV2 StatelessRandomUniformV2
    StatelessTruncatedNormalV2
Tshape _ _ _ dtype dtype > dtype: StatelessRandomUniformIntV2
_ _ shape_dtype > dtype: StatefulStandardNormalV2 StatefulTruncatedNormal StatefulUniform StatefulUniformFullInt
_ _ shape_dtype dtype dtype > dtype: StatefulUniformInt
_ > output_type: ExtractJpegShape
_ Tindices T > : ResourceScatterNdAdd ResourceScatterNdSub ResourceScatterNdUpdate
_ _ _ > dtypes*: RestoreV2
N*T > N*out_type: ShapeN
T T Tindices > T: XlaDynamicUpdateSlice
T Tindices T > T: TensorScatterAdd TensorScatterMax TensorScatterMin TensorScatterSub TensorScatterUpdate
T Tmultiples > T: Tile
Tin _ _ _ > Tout: StochasticCastToInt
_ _ T T T T T > : ResourceApplyAddSign ResourceApplyPowerSign
_ _ _ T T T T > : ResourceApplyAdadelta
_ _ _ dtypes* > : SaveV2
index_type T > T: Fill
shape_type _ > _: EmptyTensorList TensorListReserve
T Index Index > T: Slice
T Tpaddings T > T: PadV2
_ T > num_split*T: Split
_ Tcomponents* > : QueueEnqueueManyV2 QueueEnqueueV2
T T Tindices > T T: XlaBroadcastHelper
T Tout Tout > Tout: RandomUniformInt
T Tshift Taxis > T: Roll
Tcomplex _ > Treal: IRFFT IRFFT2D IRFFT3D
Treal _ > Tcomplex: RFFT RFFT2D RFFT3D
_ Tindices > dtype: ResourceGather
_ _ _ T T T T T > : ResourceApplyFtrl ResourceApplyRMSProp
_ _ _ T T T T _ > : ResourceApplyAdagradDA
T T _ T T T > _ T _: NonMaxSuppressionV5
T Tindex Tindex > T: MatrixBandPart
T Tk > T index_type: TopKV2
TInput TInput T > T: MaxPool3DGrad
Tcomplex > Tcomplex: FFT FFT2D FFT3D IFFT IFFT2D IFFT3D
_ Tindices dtype > : ResourceScatterAdd ResourceScatterDiv ResourceScatterMax ResourceScatterMin ResourceScatterMul
    ResourceScatterSub ResourceScatterUpdate
_ _ > element_dtype: TensorListStack
_ _ T T Tindices > : ResourceSparseApplyAdagrad
_ element_dtype > _: TensorListPushBack
T Tidx > output_type: ArgMax ArgMin
_ > component_types*: QueueDequeueV2
_ _ _ T T T T T T > : ResourceApplyAdaMax ResourceApplyFtrlV2
_ _ _ _ T T T T T > : ResourceApplyCenteredRMSProp
T > T out_idx out_idx: UniqueWithCounts
T T T T T > T T T T T: FusedBatchNorm FusedBatchNormGrad
T T _ T_threshold > _: NonMaxSuppressionV2
T T _ U U > T U U U U: FusedBatchNormGradV2
T U U U U > T U U U U: FusedBatchNormV2
Tidx Tidx Tidx > Tidx: Range
_ T T T T Tindices > : ResourceSparseApplyProximalGradientDescent
_ _ > _ element_dtype: TensorListPopBack
_ _ T T T Tindices > : ResourceSparseApplyAdagradV2
_ _ T T Tindices T > : ResourceSparseApplyKerasMomentum ResourceSparseApplyMomentum
_ _ _ > element_dtype: TensorListGather
_ _ element_dtype > _: TensorListSetItem
T Tidx Tsegmentids > T: SparseSegmentMean SparseSegmentSqrtN SparseSegmentSum
T Tlen _ > num_split*T: SplitV
T _ > num_partitions*T: DynamicPartition
_ _ > component_types*: QueueDequeueManyV2 QueueDequeueUpToV2
_ _ _ T T T T T T T > : ResourceApplyAdam
T Index Index Index > T: StridedSlice
T T _ U U U > T U U U U: FusedBatchNormGradV3
T Tindices Tindices > T: XlaDynamicSlice XlaGather
T U U U U > T U U U U U: FusedBatchNormV3
Tindices T Tindices > T: ScatterNd
_ OUT_TYPE* > OUT_TYPE*: DecodeCSV
_ _ T T T T Tindices > : ResourceSparseApplyProximalAdagrad
_ _ _ _ T T T T T T T > : ResourceApplyAdamWithAmsgrad
T Tblock_shape Tcrops > T: BatchToSpaceND
Tindices Tindices T T > T: SparseToDense
_ _ _ T T T T Tindices > : ResourceSparseApplyAdadelta
Tparams Tindices > Tparams: GatherNd
_ _ Tshape > element_dtype: TensorListGetItem
T Tindices Tnumsegments > T: UnsortedSegmentMax UnsortedSegmentMin UnsortedSegmentProd UnsortedSegmentSum
T Tseed dtype dtype > dtype: StatelessRandomUniformInt
_ _ _ T T T T T Tindices > : ResourceSparseApplyRMSProp
_ _ _ T Tindices T T T T > : ResourceSparseApplyFtrl
_ _ _ T Tindices T T T _ > : ResourceSparseApplyAdagradDA
T Tblock_shape Tpaddings > T: SpaceToBatchND
element_dtype shape_type > _: TensorListFromTensor
Index Index Index Index T > T: StridedSliceGrad
T Index Index Index T > T: TensorStridedSliceUpdate
_ Index Index Index T > : ResourceStridedSliceAssign
_ _ _ T Tindices T T T T T > : ResourceSparseApplyFtrlV2
_ _ _ _ T T T T T Tindices > : ResourceSparseApplyCenteredRMSProp
Tparams Tindices Taxis > Tparams: GatherV2
T T _ T_threshold T_threshold > _: NonMaxSuppressionV3
LhsT RhsT > preferred_element_type: XlaDotV2
T T Tindices Tindices Tindices > T: XlaPad
T T _ T_threshold T_threshold > _ _: NonMaxSuppressionV4
T Tindices Tindices Tindices T T > T: XlaSelectAndScatter
T _ > top_paths*_ top_paths*_ top_paths*_ T: CTCBeamSearchDecoder
T T Tindices Tindices Tindices Tindices Tindices > T: XlaConv XlaReduceWindow
LhsT RhsT Tindices Tindices Tindices Tindices Tindices > preferred_element_type: XlaConvV2
"""
UNKNOWN_TO_TENSORFLOW: Final[Mapping[str, str]] = {
    **dict.fromkeys(("Bitcast", "Cast", "RandomGamma", "RandomUniformInt"), "dtype"),
    **{"MaxPoolGradGrad": "explicit_paddings", "PrintV2": "sep", "Rank": "out_type"},
}
"""Attributes that operations have only here; what they say stands in others."""


def attributes_of_signature(operation: Operation) -> dict[str, Any]:
    """The attributes that follow from the inputs and outputs of an operation."""
    signature = _read_signatures().get(operation.type)
    if signature is None:
        return {}
    found: dict[str, Any] = {}
    for arguments, tensors in zip(signature, (operation.inputs, operation.outputs), strict=True):
        found |= _matched(arguments, tensors)
    return found


def _matched(arguments: Sequence[str], tensors: Sequence[Tensor]) -> dict[str, Any]:
    several = [each for each in arguments if "*" in each]
    count = (len(tensors) - len(arguments) + len(several)) // max(len(several), 1)
    found: dict[str, Any] = {}
    rest = list(tensors)
    for each in arguments:
        number, star, kind = each.rpartition("*")
        taken, rest = rest[: count if star else 1], rest[count if star else 1 :]
        if star and not kind:
            found[number] = [tensor.dtype for tensor in taken]
        elif star:
            found[number] = count
        if kind not in ("", "_") and taken:
            found[kind] = taken[0].dtype
    return found


@cache
def _read_signatures() -> dict[str, tuple[list[str], list[str]]]:
    """The arguments and results of each operation."""
    found = {}
    for line in _SIGNATURES.strip().replace("\n    ", " ").splitlines():
        signature, _, names = line.partition(": ")
        inputs, _, outputs = signature.partition(">")
        found.update(dict.fromkeys(names.split(), (inputs.split(), outputs.split())))
    return found
