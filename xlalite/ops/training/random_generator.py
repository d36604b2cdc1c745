"""`tf.random.Generator`: random numbers from a state that a variable holds."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.dtypes import FLOATING_TYPES, as_dtype, float32, int32, int64, uint64
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.structure import flatten, rebuild
from xlalite.hlo.errors import ShapeError
from xlalite.ops.functions.array import concat, reshape, stack, unstack, zeros_like
from xlalite.ops.functions.math import cast, reduce_prod
from xlalite.ops.helpers.constant import convert_to_tensor
from xlalite.ops.helpers.node import node, operation
from xlalite.ops.helpers.promotion import cast_to, promote
from xlalite.ops.helpers.sizes import as_size_vector
from xlalite.ops.training.variable import Variable


class Algorithm(enum.Enum):
    """How a generator makes bits."""

    PHILOX = 1
    THREEFRY = 2


_WORDS: Final = {Algorithm.PHILOX: 3, Algorithm.THREEFRY: 2}
"""Of the state: the counter's, and behind them the key."""
_GLOBAL: Final = "random_generator"


def create_rng_state(seed: Any, alg: Any) -> np.ndarray[Any, Any] | Tensor:
    """The state that begins with a seed: a Python integer, or numbers of 64 bits in a list, an array or a tensor.

    What is too short is the end of the state, where the key is.
    """
    length = _WORDS[_algorithm(alg)]
    if isinstance(seed, Tensor):
        words = cast(reshape(seed, [-1]), int64)[:length]
        known = words.shape.as_list()[0]
        return words if known == length else concat([np.zeros(length - known, np.int64), words], 0)
    if isinstance(seed, int | np.integer):
        found = [int(seed) >> 64 * place for place in range(length)]
    else:
        found = np.ravel(np.asarray(seed, object)).tolist()[:length]
    return np.array([0] * (length - len(found)) + [_signed(word) for word in found], np.int64)


def _signed(word: Any) -> Any:
    """A number of 64 bits as int64 has it."""
    return (int(word) + 2**63) % 2**64 - 2**63 if isinstance(word, int | np.integer) else word


def _algorithm(alg: Any) -> Algorithm:
    if isinstance(alg, Algorithm):
        return alg
    try:
        return Algorithm[alg.upper()] if isinstance(alg, str) else Algorithm(alg)
    except (KeyError, ValueError):
        raise ValueError(f"random algorithm {alg!r} is neither 'philox' (1) nor 'threefry' (2)") from None


def _as_state(words: Any) -> Tensor:
    if isinstance(words, Tensor | Variable):
        return cast(words, int64)
    leaves, structure = flatten(words.tolist() if isinstance(words, np.ndarray) else words)
    return cast(convert_to_tensor(rebuild(structure, [_signed(leaf) for leaf in leaves])), int64)


class Generator:
    """Random numbers from a state that a variable holds; each draw moves it on.

    A draw is an operation: each `Session.run` that needs it draws anew. The integers are TensorFlow's, compiled or not.
    """

    def __init__(self, copy_from: Generator | None = None, state: Any = None, alg: Any = None) -> None:
        """A generator like another, or with a state: a vector, or a variable that will be its own."""
        if copy_from is not None:
            state, alg = copy_from.state, copy_from.algorithm
        self._algorithm = _algorithm(alg)
        if isinstance(state, Variable) and copy_from is None:
            self._state = state
        else:
            first = state.initialized_value() if isinstance(state, Variable) else _as_state(state)
            self._state = Variable(first, trainable=False, name="StateVar")
        self._check_length(self._state)

    @classmethod
    def from_state(cls, state: Any, alg: Any) -> Generator:
        """A generator that begins with a state."""
        return cls(state=state, alg=alg)

    @classmethod
    def from_seed(cls, seed: Any, alg: Any = None) -> Generator:
        """A generator whose state follows from a seed."""
        return cls(state=create_rng_state(seed, alg or Algorithm.PHILOX), alg=alg or Algorithm.PHILOX)

    @classmethod
    def from_non_deterministic_state(cls, alg: Any = None) -> Generator:
        """A generator that begins anywhere, in each session elsewhere."""
        wanted = _algorithm(alg or Algorithm.PHILOX)
        bounds = [convert_to_tensor(bound, int64) for bound in (-(2**63), 2**63 - 1)]
        attrs = {"dtype": int64, "seed": 0, "seed2": 0}
        return cls(state=node("RandomUniformInt", [as_size_vector([_WORDS[wanted]]), *bounds], attrs), alg=wanted)

    @classmethod
    def from_key_counter(cls, key: Any, counter: Any, alg: Any) -> Generator:
        """A generator that begins with a key and a counter."""
        return cls(state=_state_of(key, counter), alg=alg)

    @property
    def state(self) -> Variable:
        """The variable: the counter and behind it the key."""
        return self._state

    @property
    def algorithm(self) -> int:
        """The number of the algorithm."""
        return self._algorithm.value

    @property
    def key(self) -> Tensor:
        """What tells the generator from others of the same algorithm."""
        key: Tensor = self._state.value()[-1]
        return key

    def reset(self, state: Any) -> Any:
        """Sets the state, when what comes back is run."""
        words = _as_state(state)
        self._check_length(words)
        return self._state.assign(words)

    def reset_from_seed(self, seed: Any) -> Any:
        """Sets the state to that of a seed, when what comes back is run."""
        return self.reset(create_rng_state(seed, self._algorithm))

    def reset_from_key_counter(self, key: Any, counter: Any) -> Any:
        """Sets the key and the counter, when what comes back is run."""
        return self.reset(_state_of(key, counter))

    def skip(self, delta: Any) -> Tensor:
        """Moves on as drawing so many numbers does; gives the state before, with zeros behind up to the longest."""
        inputs = [self._state.handle, convert_to_tensor(self.algorithm, int32), cast(delta, uint64)]
        before: Tensor = operation("RngReadAndSkip", inputs).outputs[0]
        return before

    def uniform(
        self, shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = float32, name: str | None = None
    ) -> Tensor:
        """Numbers evenly distributed in `[minval, maxval)`; integers need a `maxval`, or neither: any integer."""
        wanted = as_dtype(dtype)
        if wanted.is_integer:
            if (minval is None) != (maxval is None):
                raise ValueError(f"uniform of {wanted.name}: minval and maxval must both be None or neither")
            if minval is None:
                return self.uniform_full_int(shape, wanted, name)
            bounds = [convert_to_tensor(bound, wanted) for bound in (minval, maxval)]
            return self._draw("StatelessRandomUniformIntV2", shape, bounds, {}, name or "stateful_uniform")
        drawn = self._draw("StatelessRandomUniformV2", shape, [], {"dtype": wanted}, name or "stateful_uniform")
        low, high = (cast_to(bound, wanted) for bound in promote(minval, 1 if maxval is None else maxval))
        scaled: Tensor = drawn * (high - low) + low
        return scaled

    def uniform_full_int(self, shape: Any, dtype: Any = uint64, name: str | None = None) -> Tensor:
        """Integers of which every one that the type has is as likely."""
        attrs = {"dtype": as_dtype(dtype)}
        return self._draw("StatelessRandomUniformFullIntV2", shape, [], attrs, name or "stateful_uniform_full_int")

    def normal(
        self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = float32, name: str | None = None
    ) -> Tensor:
        """Normally distributed numbers."""
        return self._scaled("StatelessRandomNormalV2", shape, mean, stddev, dtype, name or "stateful_normal")

    def truncated_normal(
        self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = float32, name: str | None = None
    ) -> Tensor:
        """Normally distributed numbers, none further than two standard deviations from the mean."""
        return self._scaled("StatelessTruncatedNormalV2", shape, mean, stddev, dtype, name or "truncated_normal")

    def make_seeds(self, count: int = 1) -> Tensor:
        """Seeds for functions such as `tf.random.stateless_uniform`: `[2, count]`."""
        keys = self.uniform_full_int([count], int64)
        return stack([keys, zeros_like(keys)])

    def split(self, count: int = 1) -> list[Generator]:
        """So many generators with keys of their own, drawn from this one when their variables are initialised."""
        zeros = np.zeros(_WORDS[self._algorithm] - 1, np.int64)
        keys = unstack(self.uniform_full_int([count], int64), count)
        return [Generator(state=_state_of(key, zeros), alg=self._algorithm) for key in keys]

    def _draw(self, op_type: str, shape: Any, bounds: list[Tensor], attrs: Mapping[str, object], name: str) -> Tensor:
        with get_default_graph().name_scope(name):
            sizes = as_size_vector(shape)
            before = node("Bitcast", [self.skip(reduce_prod(sizes))], {"dtype": uint64})
            counter_words = _WORDS[self._algorithm] - 1
            key, counter = before[counter_words : counter_words + 1], before[:counter_words]
            return node(op_type, [sizes, key, counter, convert_to_tensor(self.algorithm, int32), *bounds], attrs)

    def _scaled(self, op_type: str, shape: Any, mean: Any, stddev: Any, dtype: Any, name: str) -> Tensor:
        wanted = as_dtype(dtype)
        if wanted not in FLOATING_TYPES:
            raise ShapeError(f"{name}: element type {wanted.name} is not floating-point")
        drawn = self._draw(op_type, shape, [], {"dtype": wanted}, name)
        scaled: Tensor = drawn * cast_to(promote(stddev)[0], wanted) + cast_to(promote(mean)[0], wanted)
        return scaled

    def _check_length(self, words: Tensor | Variable) -> None:
        length = _WORDS[self._algorithm]
        if not words.shape.is_compatible_with([length]):
            raise ShapeError(f"the state of {self._algorithm.name} has {length} numbers; found shape {words.shape}")


def _state_of(key: Any, counter: Any) -> Tensor:
    return concat([reshape(_as_state(counter), [-1]), reshape(_as_state(key), [1])], 0)


def get_global_generator() -> Generator:
    """The graph's own generator, which begins anywhere."""
    own = get_default_graph().get_collection_ref(_GLOBAL)
    if not own:
        own.append(Generator.from_non_deterministic_state())
    generator: Generator = own[-1]
    return generator


def set_global_generator(generator: Generator) -> None:
    """Makes another generator the graph's own."""
    get_default_graph().add_to_collection(_GLOBAL, generator)
