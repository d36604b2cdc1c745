"""The operations of graphs, a family a file, and the Python functions that make them.

Importing the package declares every operation.
"""

from xlalite.ops.declarations import (
    activation_gradients as activation_gradients,
    activations as activations,
    adaptive_training_ops as adaptive_training_ops,
    batch_norm as batch_norm,
    comparison as comparison,
    convolutions as convolutions,
    cumulative as cumulative,
    diagonals as diagonals,
    elementwise_binary as elementwise_binary,
    elementwise_unary as elementwise_unary,
    filling as filling,
    gathering as gathering,
    identities as identities,
    if_op as if_op,
    joining as joining,
    local_response as local_response,
    matrix_products as matrix_products,
    ordering as ordering,
    pooling as pooling,
    quantization as quantization,
    rearranging as rearranging,
    reductions as reductions,
    reshaping as reshaping,
    scattering as scattering,
    segments as segments,
    shape_queries as shape_queries,
    slicing as slicing,
    softmax as softmax,
    space_blocks as space_blocks,
    stochastic_cast as stochastic_cast,
    strided_slice as strided_slice,
    training_ops as training_ops,
    type_conversion as type_conversion,
    variable_ops as variable_ops,
    varying_sizes as varying_sizes,
    while_op as while_op,
)
from xlalite.ops.functions import operators as operators, random_ops as random_ops
