"""Training: what users reach as `xlalite.train`."""

from xlalite.ops.training.global_step import (
    create_global_step as create_global_step,
    get_global_step as get_global_step,
    get_or_create_global_step as get_or_create_global_step,
    global_step as global_step,
)
from xlalite.ops.training.optimizer import Optimizer as Optimizer
from xlalite.ops.training.optimizers import (
    AdamOptimizer as AdamOptimizer,
    GradientDescentOptimizer as GradientDescentOptimizer,
    MomentumOptimizer as MomentumOptimizer,
)
