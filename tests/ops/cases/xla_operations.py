"""XLA's own operations, made by name: products, movement, reductions and sorting by functions of scalars."""

import numpy as np
from ops.cases.case import value

from xlalite.hlo.proto import data_messages as data_messages
from xlalite.hlo.proto.message import ProtoMessage
from xlalite.hlo.proto.wire import encode
from xlalite.ops.functions import raw_ops as r

F = np.float32
X = F([[3, -1, 4], [9, 2, -6]])
Y = F([[1, 2], [0, -1], [5, 0.5]])


def message(type_name: str, **fields):
    made = ProtoMessage(type_name)
    for name, given in fields.items():
        made.put_all(name, given) if isinstance(given, list) else made.put(name, given)
    return encode(made)


PRODUCT = message("DotDimensionNumbers", lhs_contracting_dimensions=[1], rhs_contracting_dimensions=[0])
ROWS = message(
    "GatherDimensionNumbers", offset_dims=[1], collapsed_slice_dims=[0], start_index_map=[0], index_vector_dim=1
)
ADDED_ROWS = message(
    "ScatterDimensionNumbers",
    update_window_dims=[1],
    inserted_window_dims=[0],
    scatter_dims_to_operand_dims=[0],
    index_vector_dim=1,
)
CHANNELS_LAST = message(
    "ConvolutionDimensionNumbers",
    input_batch_dimension=0,
    input_spatial_dimensions=[1],
    input_feature_dimension=2,
    kernel_spatial_dimensions=[0],
    kernel_input_feature_dimension=1,
    kernel_output_feature_dimension=2,
    output_batch_dimension=0,
    output_spatial_dimensions=[1],
    output_feature_dimension=2,
)


def convolution(op, **further):
    def build(image, kernel):
        return op(
            lhs=image,
            rhs=kernel,
            window_strides=[1],
            padding=[[1, 0]],
            lhs_dilation=[1],
            rhs_dilation=[2],
            feature_group_count=1,
            dimension_numbers=CHANNELS_LAST,
            **further,
        )

    return build


def convolved(image, kernel):
    padded = np.pad(image, ((0, 0), (1, 0), (0, 0)))
    return padded[:, :-2] @ kernel[0] + padded[:, 2:] @ kernel[1]


IMAGE, KERNEL = X[:, :, None] * F([1, 2]), F([[[1], [2]], [[3], [-1]]])
SUM = {"reducer": lambda x, y: x + y, "dimensions_to_reduce": [1]}


def largest(value_a, place_a, value_b, place_b):
    from xlalite import where

    return where(value_a >= value_b, value_a, value_b), where(value_a >= value_b, place_a, place_b)


PLACES = np.int32([[0, 1, 2], [0, 1, 2]])
VALUES = [
    value("XlaDot", lambda x, y: r.XlaDot(lhs=x, rhs=y, dimension_numbers=PRODUCT), X, Y, expected=np.matmul),
    value(
        "XlaDotV2",
        lambda x, y: r.XlaDotV2(lhs=x, rhs=y, dimension_numbers=PRODUCT, preferred_element_type=np.int32),
        np.int8([[100, 100]]),
        np.int8([[100], [100]]),
        expected=lambda x, y: np.int32([[20000]]),
    ),
    value("XlaConv", convolution(r.XlaConv), IMAGE, KERNEL, expected=convolved),
    value("XlaConvV2", convolution(r.XlaConvV2, preferred_element_type=np.float64), IMAGE, KERNEL, expected=convolved),
    value(
        "XlaBroadcastHelper",
        lambda x, y: sum(r.XlaBroadcastHelper(lhs=x, rhs=y, broadcast_dims=[0])),
        X,
        F([10, 20]),
        expected=lambda x, y: x + y[:, None],
    ),
    value(
        "XlaDynamicSlice",
        lambda x, at: r.XlaDynamicSlice(input=x, start_indices=at, size_indices=[1, 2]),
        X,
        np.int32([5, 1]),
        expected=lambda x, at: x[1:, 1:],
    ),
    value(
        "XlaDynamicUpdateSlice",
        lambda x, new, at: r.XlaDynamicUpdateSlice(input=x, update=new, indices=at),
        X,
        F([[7]]),
        np.int64([0, 2]),
        expected=lambda x, new, at: F([[3, -1, 7], [9, 2, -6]]),
    ),
    value(
        "XlaPad",
        lambda x, fill: r.XlaPad(
            input=x, padding_value=fill, padding_low=[0, -1], padding_high=[1, 0], padding_interior=[0, 1]
        ),
        X,
        F(8),
        expected=lambda x, fill: F([[8, -1, 8, 4], [8, 2, 8, -6], [8, 8, 8, 8]]),
    ),
    value(
        "XlaGather",
        lambda x, rows: r.XlaGather(
            operand=x, start_indices=rows, slice_sizes=[1, 3], dimension_numbers=ROWS, indices_are_sorted=False
        ),
        X,
        np.int32([[1], [0], [1]]),
        expected=lambda x, rows: x[[1, 0, 1]],
    ),
    value(
        "XlaScatter",
        lambda x, rows, new: r.XlaScatter(
            operand=x,
            scatter_indices=rows,
            updates=new,
            update_computation=lambda a, b: a + b,
            dimension_numbers=ADDED_ROWS,
            indices_are_sorted=False,
        ),
        X,
        np.int32([[1], [1], [2]]),
        Y.T[[0, 1, 0]],
        expected=lambda x, rows, new: x + F([[0, 0, 0], new[0] + new[1]]),
    ),
    value("XlaReduce", lambda x: r.XlaReduce(input=x, init_value=1.0, **SUM), X, expected=lambda x: x.sum(1) + 1),
    *(
        value(
            make.__name__,
            lambda x, at, make=make, inputs=inputs, inits=inits: make(
                **{inputs: [x, at], inits: [-np.inf, -1]}, reducer=largest, dimensions_to_reduce=[1]
            )[1],
            X,
            PLACES,
            expected=lambda x, at: np.argmax(x, 1),
        )
        for make, inputs, inits in (
            (r.XlaVariadicReduceV2, "inputs", "init_values"),
            (r.XlaVariadicReduce, "input", "init_value"),
        )
    ),
    value(
        "XlaReduceWindow",
        lambda x: r.XlaReduceWindow(
            input=x,
            init_value=0.0,
            computation=lambda a, b: a + b,
            window_dimensions=[1, 2],
            window_strides=[1, 1],
            base_dilations=[1, 1],
            window_dilations=[1, 2],
            padding=[[0, 0], [0, 0]],
        ),
        X,
        expected=lambda x: x[:, :1] + x[:, 2:],
    ),
    value(
        "XlaSelectAndScatter",
        lambda x, source: r.XlaSelectAndScatter(
            operand=x,
            source=source,
            init_value=0.0,
            select=lambda a, b: a >= b,
            scatter=lambda a, b: a + b,
            window_dimensions=[2, 1],
            window_strides=[2, 1],
            padding=[[0, 0], [0, 0]],
        ),
        X,
        F([[10, 20, 30]]),
        expected=lambda x, source: F([[0, 0, 30], [10, 20, 0]]),
    ),
    value("XlaSort", lambda x: r.XlaSort(input=x), X, expected=np.sort),
    value(
        "XlaKeyValueSort",
        lambda x, at: r.XlaKeyValueSort(keys=x, values=at)[1],
        X,
        PLACES,
        expected=lambda x, at: np.argsort(x, 1),
    ),
    value(
        "XlaVariadicSort",
        lambda x, at: r.XlaVariadicSort(
            inputs=[x, at], dimension=0, comparator=lambda a, b, *rest: a > b, is_stable=True
        )[0],
        X,
        PLACES,
        expected=lambda x, at: -np.sort(-x, 0),
    ),
]
