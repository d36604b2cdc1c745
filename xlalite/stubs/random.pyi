# Written by `python -m pytest tests/test_public_names.py --bless` from the tables of names.

from xlalite.framework.random_seed import set_random_seed as set_random_seed
from xlalite.ops.functions.candidate_samplers import (
    all_candidate_sampler as all_candidate_sampler, fixed_unigram_candidate_sampler as fixed_unigram_candidate_sampler,
    learned_unigram_candidate_sampler as learned_unigram_candidate_sampler,
    log_uniform_candidate_sampler as log_uniform_candidate_sampler,
    uniform_candidate_sampler as uniform_candidate_sampler
)
from xlalite.ops.functions.distributions import (
    categorical as categorical, multinomial as multinomial, random_crop as _random_crop, random_gamma as _random_gamma,
    random_poisson as _random_poisson, stateless_multinomial as stateless_multinomial,
    stateless_random_normal as _stateless_random_normal, stateless_random_uniform as _stateless_random_uniform,
    stateless_truncated_normal as stateless_truncated_normal
)
from xlalite.ops.functions.random_ops import (
    random_normal as _random_normal, random_shuffle as _random_shuffle, random_uniform as _random_uniform,
    truncated_normal as truncated_normal
)
from xlalite.ops.training.random_generator import (
    Algorithm as Algorithm, Generator as Generator, create_rng_state as create_rng_state,
    get_global_generator as get_global_generator, set_global_generator as set_global_generator
)
from xlalite.stubs import random_experimental as _random_experimental

crop = _random_crop
gamma = _random_gamma
poisson = _random_poisson
stateless_categorical = stateless_multinomial
stateless_normal = _stateless_random_normal
stateless_uniform = _stateless_random_uniform
normal = _random_normal
shuffle = _random_shuffle
uniform = _random_uniform
experimental = _random_experimental
