"""The cells: plain, gated and long short-term memory."""

from __future__ import annotations

from typing import Any

from xlalite.framework.graph.errors import GraphError
from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.functions.array import concat, split
from xlalite.ops.functions.math import clip_by_value, matmul, rsqrt, sigmoid, tanh
from xlalite.ops.functions.nn import bias_add, moments, relu
from xlalite.ops.recurrent.cell import LSTMStateTuple, RNNCell, activation_or_tanh, input_size
from xlalite.ops.recurrent.time_steps import dropped_out
from xlalite.ops.training.initializers import constant_initializer, zeros_initializer


class BasicRNNCell(RNNCell):
    """activation([x, h] W + b), which is output and next state."""

    def __init__(
        self,
        num_units: int,
        activation: Any = None,
        reuse: Any = None,
        name: str | None = None,
        dtype: Any = None,
        **options: Any,
    ) -> None:
        """A cell of `num_units`."""
        super().__init__(name=name, dtype=dtype, _reuse=reuse, **options)
        self._num_units = num_units
        self._activation = activation_or_tanh(activation)

    @property
    def state_size(self) -> int:
        """The number of units."""
        return self._num_units

    @property
    def output_size(self) -> int:
        """The number of units."""
        return self._num_units

    def build(self, inputs_shape: Any) -> None:
        """Makes kernel and bias."""
        rows = input_size(inputs_shape) + self._num_units
        self._kernel = self.add_variable("kernel", [rows, self._num_units])
        self._bias = self.add_variable("bias", [self._num_units], initializer=zeros_initializer)

    def call(self, inputs: Any, state: Any) -> tuple[Tensor, Tensor]:
        """One step."""
        output = self._activation(bias_add(matmul(concat([inputs, state], 1), self._kernel), self._bias))
        return output, output


class GRUCell(RNNCell):
    """Gated recurrent unit (Cho et al. 2014): u h + (1 - u) activation([x, r h] W + b), with gates r and u."""

    def __init__(
        self,
        num_units: int,
        activation: Any = None,
        reuse: Any = None,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        name: str | None = None,
        dtype: Any = None,
        **options: Any,
    ) -> None:
        """A cell of `num_units`; the biases of the gates begin as ones, so that it keeps its state at first."""
        super().__init__(name=name, dtype=dtype, _reuse=reuse, **options)
        self._num_units = num_units
        self._activation = activation_or_tanh(activation)
        self._kernel_initializer = kernel_initializer
        self._bias_initializer = bias_initializer

    @property
    def state_size(self) -> int:
        """The number of units."""
        return self._num_units

    @property
    def output_size(self) -> int:
        """The number of units."""
        return self._num_units

    def build(self, inputs_shape: Any) -> None:
        """Makes kernels and biases of the gates and of the candidate."""
        units = self._num_units
        rows = input_size(inputs_shape) + units
        kernel, bias = self._kernel_initializer, self._bias_initializer
        ones = bias if bias is not None else constant_initializer(1.0)
        self._gate_kernel = self.add_variable("gates/kernel", [rows, 2 * units], initializer=kernel)
        self._gate_bias = self.add_variable("gates/bias", [2 * units], initializer=ones)
        self._kernel = self.add_variable("candidate/kernel", [rows, units], initializer=kernel)
        self._bias = self.add_variable("candidate/bias", [units], initializer=bias or zeros_initializer)

    def call(self, inputs: Any, state: Any) -> tuple[Tensor, Tensor]:
        """One step."""
        gates = sigmoid(bias_add(matmul(concat([inputs, state], 1), self._gate_kernel), self._gate_bias))
        r, u = split(gates, 2, 1)
        candidate = self._activation(bias_add(matmul(concat([inputs, r * state], 1), self._kernel), self._bias))
        output: Tensor = u * state + (1 - u) * candidate
        return output, output


class LSTMCell(RNNCell):
    """Long short-term memory (Hochreiter and Schmidhuber 1997), with peepholes and a projection if asked (Sak 2014).

    c' = sigmoid(f + forget_bias) c + sigmoid(i) activation(j); h' = sigmoid(o) activation(c'), where i, j, f, o are the
    parts of [x, h] W + b.
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        cell_clip: float | None = None,
        initializer: Any = None,
        num_proj: int | None = None,
        proj_clip: float | None = None,
        num_unit_shards: Any = None,
        num_proj_shards: Any = None,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Any = None,
        reuse: Any = None,
        name: str | None = None,
        dtype: Any = None,
        **options: Any,
    ) -> None:
        """A cell of `num_units`; states are clipped to `cell_clip`, projections to `num_proj` units to `proj_clip`."""
        super().__init__(name=name, dtype=dtype, _reuse=reuse, **options)
        self._num_units = num_units
        self._use_peepholes = use_peepholes
        self._cell_clip = cell_clip
        self._initializer = initializer
        self._num_proj = num_proj
        self._proj_clip = proj_clip
        self._forget_bias = forget_bias
        self._state_is_tuple = state_is_tuple
        self._activation = activation_or_tanh(activation)

    @property
    def state_size(self) -> Any:
        """The sizes of c and h."""
        sizes = LSTMStateTuple(self._num_units, self.output_size)
        return sizes if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> int:
        """The number of units, or of what they are projected to."""
        return self._num_proj or self._num_units

    def build(self, inputs_shape: Any) -> None:
        """Makes kernel, bias, peepholes and projection."""
        units, initial = self._num_units, self._initializer
        rows = input_size(inputs_shape) + self.output_size
        self._kernel = self.add_variable("kernel", [rows, 4 * units], initializer=initial)
        self._bias = self.add_variable("bias", [4 * units], initializer=zeros_initializer)
        if self._use_peepholes:
            self._peepholes = [
                self.add_variable(f"w_{gate}_diag", [units], initializer=initial) for gate in ("f", "i", "o")
            ]
        if self._num_proj:
            self._projection = self.add_variable("projection/kernel", [units, self._num_proj], initializer=initial)

    def call(self, inputs: Any, state: Any) -> tuple[Tensor, Any]:
        """One step."""
        c, h = self._parts(state)
        gates = bias_add(matmul(concat([inputs, h], 1), self._kernel), self._bias)
        i, j, f, o = split(gates, 4, 1)
        f = f + self._forget_bias
        if self._use_peepholes:
            f, i = f + self._peepholes[0] * c, i + self._peepholes[1] * c
        c = sigmoid(f) * c + sigmoid(i) * self._activation(j)
        if self._cell_clip is not None:
            c = clip_by_value(c, -self._cell_clip, self._cell_clip)
        if self._use_peepholes:
            o = o + self._peepholes[2] * c
        h = sigmoid(o) * self._activation(c)
        if self._num_proj:
            h = matmul(h, self._projection)
            if self._proj_clip is not None:
                h = clip_by_value(h, -self._proj_clip, self._proj_clip)
        return h, LSTMStateTuple(c, h) if self._state_is_tuple else concat([c, h], 1)

    def _parts(self, state: Any) -> tuple[Any, Any]:
        if self._state_is_tuple:
            if not isinstance(state, list | tuple) or len(state) != 2:
                raise GraphError(f"{self.name}: the state is a pair (c, h), found {state!r}")
            return state[0], state[1]
        c, h = split(state, [self._num_units, self.output_size], 1)
        return c, h


class BasicLSTMCell(LSTMCell):
    """Long short-term memory without peepholes, clipping or projection."""

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Any = None,
        reuse: Any = None,
        name: str | None = None,
        dtype: Any = None,
        **options: Any,
    ) -> None:
        """A cell of `num_units`."""
        super().__init__(
            num_units,
            forget_bias=forget_bias,
            state_is_tuple=state_is_tuple,
            activation=activation,
            reuse=reuse,
            name=name,
            dtype=dtype,
            **options,
        )


class LSTMBlockCell(LSTMCell):
    """TensorFlow's long short-term memory of one operation; here clusters fuse the usual one."""

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        cell_clip: float | None = None,
        use_peephole: bool = False,
        dtype: Any = None,
        reuse: Any = None,
        name: str = "lstm_cell",
    ) -> None:
        """A cell of `num_units`."""
        super().__init__(
            num_units,
            use_peephole,
            cell_clip,
            forget_bias=forget_bias,
            reuse=reuse,
            name=name,
            dtype=dtype,
        )


class NASCell(RNNCell):
    """The cell that a search for architectures found (Zoph and Le 2017)."""

    def __init__(
        self, num_units: int, num_proj: int | None = None, use_bias: bool = False, reuse: Any = None, **options: Any
    ) -> None:
        """A cell of `num_units`, whose output is projected to `num_proj` if asked."""
        super().__init__(_reuse=reuse, **options)
        self._num_units = num_units
        self._num_proj = num_proj
        self._use_bias = use_bias

    @property
    def state_size(self) -> LSTMStateTuple:
        """The sizes of c and h."""
        return LSTMStateTuple(self._num_units, self.output_size)

    @property
    def output_size(self) -> int:
        """The number of units, or of what they are projected to."""
        return self._num_proj or self._num_units

    def build(self, inputs_shape: Any) -> None:
        """Makes kernels, bias and projection."""
        units = self._num_units
        self._recurrent_kernel = self.add_variable("recurrent_kernel", [self.output_size, 8 * units])
        self._kernel = self.add_variable("kernel", [input_size(inputs_shape), 8 * units])
        if self._use_bias:
            self._bias = self.add_variable("bias", [8 * units], initializer=zeros_initializer)
        if self._num_proj:
            self._projection = self.add_variable("projection_weights", [units, self._num_proj])

    def call(self, inputs: Any, state: Any) -> tuple[Tensor, LSTMStateTuple]:
        """One step: eight parts of input and state are joined in pairs, up to the new cell and output."""
        c, h = state
        recurrent = matmul(h, self._recurrent_kernel)
        if self._use_bias:
            recurrent = bias_add(recurrent, self._bias)
        pairs = zip(split(matmul(inputs, self._kernel), 8, 1), split(recurrent, 8, 1), strict=True)
        joined = [x * m if place == 3 else x + m for place, (x, m) in enumerate(pairs)]
        functions = (sigmoid, relu, sigmoid, relu, tanh, sigmoid, tanh, sigmoid)
        first = [function(value) for function, value in zip(functions, joined, strict=True)]
        opened = tanh(tanh(first[0] * first[1]) + c)
        c = opened * tanh(first[2] + first[3])
        h = tanh(c * tanh(tanh(first[4] * first[5]) + sigmoid(first[6] + first[7])))
        if self._num_proj:
            h = matmul(h, self._projection)
        return h, LSTMStateTuple(c, h)


class LayerNormBasicLSTMCell(LSTMCell):
    """Long short-term memory whose gates and state are normalised (Ba et al. 2016)."""

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        input_size: Any = None,
        activation: Any = None,
        layer_norm: bool = True,
        norm_gain: float = 1.0,
        norm_shift: float = 0.0,
        dropout_keep_prob: Any = 1.0,
        dropout_prob_seed: int | None = None,
        reuse: Any = None,
    ) -> None:
        """A cell of `num_units`; `norm_gain` and `norm_shift` are what the normalisations begin with."""
        super().__init__(num_units, forget_bias=forget_bias, activation=activation, reuse=reuse)
        self._layer_norm = layer_norm
        self._gain, self._shift = norm_gain, norm_shift
        self._keep_prob = dropout_keep_prob
        self._seed = dropout_prob_seed

    def build(self, inputs_shape: Any) -> None:
        """Makes the kernel, and what each normalisation learns, or a bias."""
        units = self._num_units
        rows = input_size(inputs_shape) + units
        self._kernel = self.add_variable("kernel", [rows, 4 * units])
        if not self._layer_norm:
            self._bias = self.add_variable("bias", [4 * units], initializer=zeros_initializer)
            return
        self._norms = {
            part: (
                self.add_variable(f"{part}/gamma", [units], initializer=constant_initializer(self._gain)),
                self.add_variable(f"{part}/beta", [units], initializer=constant_initializer(self._shift)),
            )
            for part in ("input", "transform", "forget", "output", "state")
        }

    def call(self, inputs: Any, state: Any) -> tuple[Tensor, Any]:
        """One step."""
        c, h = self._parts(state)
        gates = matmul(concat([inputs, h], 1), self._kernel)
        parts = split(gates if self._layer_norm else bias_add(gates, self._bias), 4, 1)
        i, j, f, o = (
            self._normalized(part, name)
            for part, name in zip(parts, ("input", "transform", "forget", "output"), strict=True)
        )
        g = self._activation(j)
        if not isinstance(self._keep_prob, float) or self._keep_prob < 1:
            g = dropped_out(g, self._keep_prob, self._seed)
        c = self._normalized(c * sigmoid(f + self._forget_bias) + sigmoid(i) * g, "state")
        h = self._activation(c) * sigmoid(o)
        return h, LSTMStateTuple(c, h)

    def _normalized(self, x: Tensor, name: str) -> Tensor:
        if not self._layer_norm:
            return x
        gamma, beta = self._norms[name]
        mean, variance = moments(x, [1], keepdims=True)
        normalized: Tensor = (x - mean) * rsqrt(variance + 1e-12) * gamma + beta
        return normalized


GRUBlockCell = GRUBlockCellV2 = GRUCell
