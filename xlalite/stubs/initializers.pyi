# Written by `python -m pytest tests/test_public_names.py --bless` from the tables of names.

from xlalite.ops.functions.lookup import tables_initializer as tables_initializer
from xlalite.ops.training.initializers import (
    Constant as Constant, Identity as Identity, Initializer as Initializer, Ones as Ones, Orthogonal as Orthogonal,
    RandomNormal as RandomNormal, RandomUniform as RandomUniform, TruncatedNormal as TruncatedNormal,
    UniformUnitScaling as UniformUnitScaling, VarianceScaling as VarianceScaling, Zeros as Zeros,
    glorot_normal_initializer as _glorot_normal_initializer, glorot_uniform_initializer as _glorot_uniform_initializer,
    he_normal as he_normal, he_uniform as he_uniform, lecun_normal as lecun_normal, lecun_uniform as lecun_uniform
)
from xlalite.ops.training.variable import (
    global_variables_initializer as _global_variables_initializer,
    local_variables_initializer as _local_variables_initializer, variables_initializer as _variables_initializer
)

constant = Constant
ones = Ones
random_normal = RandomNormal
random_uniform = RandomUniform
truncated_normal = TruncatedNormal
variance_scaling = VarianceScaling
zeros = Zeros
glorot_normal = _glorot_normal_initializer
glorot_uniform = _glorot_uniform_initializer
identity = Identity
orthogonal = Orthogonal
uniform_unit_scaling = UniformUnitScaling
global_variables = _global_variables_initializer
local_variables = _local_variables_initializer
variables = _variables_initializer
