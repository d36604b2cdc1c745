# Written by `python -m pytest tests/test_public_names.py --bless` from the tables of names.

from xlalite.ops.functions.sparse import (
    SparseTensor as SparseTensor, sparse_concat as _sparse_concat, sparse_from_dense as _sparse_from_dense,
    sparse_placeholder as _sparse_placeholder, sparse_reduce_sum as _sparse_reduce_sum,
    sparse_reorder as _sparse_reorder, sparse_reshape as _sparse_reshape, sparse_retain as _sparse_retain,
    sparse_tensor_dense_matmul as _sparse_tensor_dense_matmul, sparse_tensor_to_dense as _sparse_tensor_to_dense
)
from xlalite.ops.functions.sparse_arithmetic import (
    sparse_add as _sparse_add, sparse_softmax as _sparse_softmax, sparse_transpose as _sparse_transpose
)

concat = _sparse_concat
from_dense = _sparse_from_dense
matmul = _sparse_tensor_dense_matmul
placeholder = _sparse_placeholder
reduce_sum = _sparse_reduce_sum
reorder = _sparse_reorder
reshape = _sparse_reshape
retain = _sparse_retain
sparse_dense_matmul = _sparse_tensor_dense_matmul
to_dense = _sparse_tensor_to_dense
add = _sparse_add
softmax = _sparse_softmax
transpose = _sparse_transpose
