"""What TensorFlow calls the outputs of operations, by which nodes inside functions name their inputs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final

# The outputs' names: operations. `name*` stands for several; the operations that are not here have `output*`.
_NAMES: Final = """
y: Abs Acos Acosh Asin Asinh Atan Atanh BesselI0e BesselI1e Cast Ceil ComplexAbs Cos Cosh DataFormatDimMap
    DataFormatVecPermute Digamma Erf Erfc Erfinv Exp Expm1 Floor Inv Invert InvertPermutation IsFinite IsInf IsNan
    Lgamma Log Log1p LogicalNot Ndtri Neg OnesLike PopulationCount Reciprocal Rint Round Rsqrt Sigmoid Sign Sin Sinh
    Sqrt Square Tan Tanh Transpose ZerosLike
z: Add AddV2 ApproximateEqual Atan2 Betainc BitwiseAnd BitwiseOr BitwiseXor Div DivNoNan Equal FloorDiv FloorMod
    Greater GreaterEqual Igamma IgammaGradA Igammac InvGrad LeftShift Less LessEqual LogicalAnd LogicalOr Maximum
    Minimum Mod Mul MulNoNan NotEqual Polygamma Pow RealDiv ReciprocalGrad RightShift RsqrtGrad SigmoidGrad SqrtGrad
    SquaredDifference Sub TanhGrad TruncateDiv TruncateMod Xdivy Xlog1py Xlogy Zeta
backprops: EluGrad FakeQuantWithMinMaxArgsGradient LeakyReluGrad Relu6Grad ReluGrad SeluGrad SoftplusGrad SoftsignGrad
handle: EmptyTensorList FIFOQueueV2 IteratorV2 PaddingFIFOQueueV2 PriorityQueueV2 RandomShuffleQueueV2 StackV2
    TensorListReserve
activations: Elu LeakyRelu Relu Relu6 Selu Softplus Softsign
image: DecodeAndCropJpeg DecodeBmp DecodeGif DecodeImage DecodeJpeg DecodePng
out: Complex Cumprod Cumsum CumulativeLogsumexp HistogramFixedWidth
reader_handle: FixedLengthRecordReaderV2 IdentityReaderV2 TFRecordReaderV2 TextLineReaderV2 WholeFileReaderV2
sampled_candidates true_expected_count sampled_expected_count: AllCandidateSampler FixedUnigramCandidateSampler
    LearnedUnigramCandidateSampler LogUniformCandidateSampler UniformCandidateSampler
summary: AudioSummaryV2 HistogramSummary ImageSummary MergeSummary ScalarSummary TensorSummaryV2
components*: IteratorGetNext QueueDequeueManyV2 QueueDequeueUpToV2 QueueDequeueV2
diagonal: DiagPart MatrixDiagPart MatrixDiagPartV2 MatrixDiagPartV3
resized_images: ResizeArea ResizeBicubic ResizeBilinear ResizeNearestNeighbor
contents: EncodeJpeg EncodePng ReadFile
output_handle: TensorListFromTensor TensorListPushBack TensorListSetItem
outputs: FakeQuantWithMinMaxArgs FakeQuantWithMinMaxVars FakeQuantWithMinMaxVarsPerChannel
outputs*: DynamicPartition XlaVariadicReduceV2 XlaVariadicSort
selected_indices: NonMaxSuppression NonMaxSuppressionV2 NonMaxSuppressionV3
backprops_wrt_input backprop_wrt_min backprop_wrt_max: FakeQuantWithMinMaxVarsGradient
    FakeQuantWithMinMaxVarsPerChannelGradient
indices values shape: StringSplit StringSplitV2
loss backprop: SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyWithLogits
merged: DynamicStitch ParallelDynamicStitch
precision: InTopK InTopKV2
value: ReadVariableOp RngReadAndSkip
values: NthElement TensorListGather
values indices: TopK TopKV2
x_backprop scale_backprop offset_backprop reserve_space_3 reserve_space_4: FusedBatchNormGrad FusedBatchNormGradV2
y batch_mean batch_variance reserve_space_1 reserve_space_2: FusedBatchNorm FusedBatchNormV2
alg: StatelessRandomGetAlg
band: MatrixBandPart
begin size bboxes: SampleDistortedBoundingBoxV2
bins: Bincount
context_sparse_indices* context_sparse_values* context_sparse_shapes* context_dense_values*
    feature_list_sparse_indices* feature_list_sparse_values* feature_list_sparse_shapes* feature_list_dense_values*:
    ParseSingleSequenceExample
crops: CropAndResize
decoded_indices decoded_values decoded_shape log_probability: CTCGreedyDecoder
decoded_indices* decoded_values* decoded_shape* log_probability: CTCBeamSearchDecoder
dense: SparseToDense
e v: SelfAdjointEigV2
elem: StackPopV2
element_shape: TensorListElementShape
filename: ShardedFilename
filenames: MatchingFiles
filter_backprop: Dilation2DBackpropFilter
image_shape: ExtractJpegShape
in_backprop: Dilation2DBackpropInput
index: Where
indices ids weights: ComputeAccidentalHits
input_backprop input_min_backprop input_max_backprop: QuantizeAndDequantizeV4Grad
output output_min output_max: QuantizeV2
is_closed: QueueIsClosedV2
is_initialized: VarIsInitializedOp
item: TensorListGetItem
key counter: StatelessRandomGetKeyCounter
key counter alg: StatelessRandomGetKeyCounterAlg
key value: ReaderReadV2
keys values: ReaderReadUpToV2
length: TensorListLength
lhs_output rhs_output: XlaBroadcastHelper
logsoftmax: LogSoftmax
loss gradient: CTCLoss
offset*: ConcatOffset
out idx: ListDiff
output argmax: MaxPoolWithArgmax
output_handle tensor: TensorListPopBack
patches: ExtractImagePatches
product: MatMul
q r: Qr
r0: BroadcastArgs
r0 r1: BroadcastGradientArgs
records_produced: ReaderNumRecordsProducedV2
resource: VarHandleOp
s u v: Svd
selected_indices selected_scores valid_outputs: NonMaxSuppressionV5
selected_indices valid_outputs: NonMaxSuppressionV4
sign log_abs_determinant: LogMatrixDeterminant
size: QueueSizeV2
softmax: Softmax
sorted_keys sorted_values: XlaKeyValueSort
sparse_indices* sparse_values* sparse_shapes* dense_values*: ParseExample
sum: AddN
tensor: TensorListStack
tensors*: RestoreV2
units_completed: ReaderNumWorkUnitsCompletedV2
x_backprop scale_backprop offset_backprop reserve_space_4 reserve_space_5: FusedBatchNormGradV3
y batch_mean batch_variance reserve_space_1 reserve_space_2 reserve_space_3: FusedBatchNormV3
y idx: Unique
y idx count: UniqueWithCounts
"""


def place_of(names: Sequence[str], count: int, name: str, number: int) -> int | None:
    """Which of `count` outputs is the given one of those with a name; None if there is none."""
    sizes = _sizes(names, count)
    for each, start, size in sizes:
        if each == name and 0 <= number < size:
            return start + number
    return number if count == 1 and not number else None


def spelled(op_type: str, count: int, place: int) -> str:
    """How a function names one of `count` outputs: `y:0`."""
    found = next(each for each in _sizes(names_of(op_type), count) if each[1] <= place < each[1] + each[2])
    return f"{found[0]}:{place - found[1]}"


def names_of(op_type: str) -> Sequence[str]:
    """The names of the outputs of an operation."""
    return _read_names().get(op_type, ("output*",))


def _sizes(names: Sequence[str], count: int) -> list[tuple[str, int, int]]:
    """The names, where the outputs begin that they stand for, and how many these are."""
    several = sum(each.endswith("*") for each in names)
    share = (count - len(names) + several) // max(several, 1)
    found: list[tuple[str, int, int]] = []
    start = 0
    for each in names:
        size = share if each.endswith("*") else 1
        found.append((each.rstrip("*"), start, size))
        start += size
    return found


@cache
def _read_names() -> dict[str, Sequence[str]]:
    found: dict[str, Sequence[str]] = {}
    for line in _NAMES.strip().replace("\n    ", " ").splitlines():
        names, _, operations = line.partition(": ")
        found.update(dict.fromkeys(operations.split(), (*names.split(),)))
    return found
