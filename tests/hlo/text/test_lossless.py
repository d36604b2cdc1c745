"""The preset `lossless`: what is read back is the same module, to the last bit, name and annotation."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from xlalite.hlo.building.builder import Builder
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.text import parse
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Literal
from xlalite.hlo.types.shape import Shape

EVERYTHING = """HloModule m, is_scheduled=true, input_output_alias={ {0}: (0, {}, must-alias) }, buffer_donor={ (1, {}) }, alias_passthrough_params=true, entry_computation_layout={(f32[2,3]{0,1:T(8,128)}, s32[])->(f32[2,3]{1,0}, f32[2])}, replica_count=2, frontend_attributes={k="v",j={"a":1}}

FileNames
1 "a.py"

FunctionNames
1 "f"

FileLocations
1 {file_name_id=1 function_name_id=1 line=3 end_line=3 column=1 end_column=2}

StackFrames
1 {file_location_id=1}

inner {
  q = f32[2] parameter(0)
  ROOT n = f32[2] negate(q), metadata={op_name="deep \\"quoted\\" \\303\\251"}
}, execution_thread="side"

plain {
  p = f32[2] parameter(0)
  ROOT tanh = f32[2] tanh(p)
}

never_called {
  ROOT %f32 = f32[3]{0} constant({nan(0x1), -nan(0x7fffff), -0})
}

ENTRY %e (a: f32[2,3], i: s32[]) -> (f32[2,3], f32[2]) {
  i = s32[] parameter(1), sharding={replicated}
  a = f32[2,3]{0,1:T(8,128)} parameter(0), sharding={devices=[2,1]<=[2]}
  k = f32[2] constant({nan(0x400001), 1.00000012}), metadata={op_type="t" op_name="n" source_file="f" source_line=3 stack_frame_id=1}
  big = s8[3,5] constant({{1,2,3,4,5},{6,7,8,9,10},{-128,127,0,0,0}})
  gone = f32[1000] constant({...})
  s = ((f32[2]), f32[2], u32[]) async-start(k), async_execution_thread="side", calls=inner
  d = f32[2] async-done(s)
  t = ((f32[2]), f32[2], u32[]) async-start(k), calls=plain
  w = f32[2] async-done(t), control-predecessors={d, big}
  c = f32[2,3]{1,0} copy(a), frontend_attributes={x="y",z={"q":[1]}}, backend_config={"outer":["4"]}, statistics={visualizing_index=0,bytes=1}
  ROOT r = (f32[2,3]{1,0}, f32[2]) tuple(c, w), backend_config="raw \\t text", some_future_attribute={a,{b}}
}
"""  # noqa: E501


def spelled(value: object) -> object:
    """A value with shapes as their text, which says the same of a usual layout and of none."""
    if isinstance(value, tuple):
        return tuple(map(spelled, value))
    return str(value) if isinstance(value, Shape) else value


def described(module: HloModule) -> list[object]:
    """Everything that a module holds, in an order that is not the printer's."""
    found: list[object] = [module.name, module.config, module.tables]
    for computation in sorted(module.computations(), key=lambda one: one.name):
        found.append((computation.name, computation.execution_thread, computation.is_entry, computation.root.name))
        order = computation.instructions if module.config.is_scheduled else computation.post_order()
        for one in order:
            attributes = [spelled(getattr(one.attrs, field.name)) for field in dataclasses.fields(one.attrs)]
            found.append((one.name, one.opcode, str(one.shape), attributes, [operand.name for operand in one.operands]))
            found.append(([called.name for called in one.called_computations], one.metadata, one.sharding))
            found.append((one.frontend_attributes, one.backend_config, one.extra_attributes))
            found.append([before.name for before in one.control_predecessors])
    return found


def check(module: HloModule) -> None:
    text = module.to_string("lossless")
    again = parse(text)
    assert described(again) == described(module)
    assert again.to_string("lossless") == text


def test_everything_comes_back() -> None:
    module = parse(EVERYTHING)
    check(module)
    check(module.clone())
    text = module.to_string("lossless")
    assert 'async-start(%k), async_execution_thread="side", calls=%inner' in text
    assert "nan(0x7fffff)" in text
    assert "127, 0, 0, 0 }" in text


def test_other_presets_lose_something() -> None:
    module = parse(EVERYTHING)
    assert all(described(parse(module.to_string(one))) != described(module) for one in ("default", "short_parsable"))


def test_records_come_back(op_case: Any) -> None:
    for dtype in op_case.dtypes:
        check(parse(op_case.text(dtype)))


@pytest.mark.parametrize("seed", range(20))
def test_random_modules_come_back(seed: int, random_module: Callable[[random.Random, int], HloModule]) -> None:
    check(random_module(random.Random(seed), 25))


@pytest.mark.parametrize("dtype", [dtype for dtype in DType if dtype.is_array])
def test_constants_come_back_bit_by_bit(dtype: DType, rng: np.random.Generator) -> None:
    data = rng.integers(0, 256, 300 * dtype.size_bytes, np.uint8)
    if dtype is DType.PRED:
        data &= 1
    elif dtype.bits < 8:
        data &= (1 << dtype.bits) - 1
    array = data.view(dtype.numpy).reshape(3, 100)
    if dtype.bits < 8 and dtype.is_integral:  # which NumPy holds with the sign extended
        array = (array.astype(np.int8) - (dtype.is_signed << (dtype.bits - 1))).astype(dtype.numpy)
    builder = Builder("main")
    module = builder.build_module(builder.constant(Literal(array, Shape.array(dtype, (3, 100)))))
    again = parse(module.to_string("lossless"))
    assert again.entry_computation.root.attrs.literal.value.tobytes() == array.tobytes()
