"""Whatever a file holds, only errors of xlalite come out."""

from __future__ import annotations

import random

import numpy as np
import pytest
from interop.onnx.onnx_models import function, graph, model, node

import xlalite
from xlalite.hlo.errors import XlaliteError
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.verification.verifier import verify

F32, S64 = DType.F32, DType.S64
_BODY = graph(
    [node("Identity", "c", "d"), node("Add", "s x", "t")],
    {"i": (S64, []), "c": (DType.PRED, []), "s": (F32, [2, 6])},
    "d t",
)
_WEIGHTS = np.linspace(-1, 1, 24, dtype=np.float32)
MODELS = [
    model(
        [
            node("Conv", "x w b", "y", pads=[1, 1, 1, 1], strides=[1, 1], group=1),
            node("MaxPool", "y", "p", kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1),
            node("Shape", "p", "s", start=0, end=1),
            node("Concat", "s m", "t", axis=0),
            node("Reshape", "p t", "r"),
            node("Softmax", "r", "z", axis=-1),
        ],
        {"x": (F32, ["n", 2, 5, 4])},
        "z",
        {"w": _WEIGHTS[:12].reshape(3, 2, 2, 1), "b": _WEIGHTS[:3], "m": np.array([-1])},
    ),
    model(
        [
            node("Loop", "k - x", "y", body=_BODY),
            node("Gather", "y i", "g", axis=1),
            node("Slice", "g a e - u", "v"),
            node("Twice", "v", "w", "local", factor=2.0),
            node("TopK", "w two", "values places", axis=1),
            node("Resize", "q - - f", "o", mode="linear"),
        ],
        {"x": (F32, [2, 6]), "q": (F32, [1, 1, 2, 6])},
        "values places o",
        {
            "k": np.array(3), "i": np.array([4, 1, -1, 0]), "a": np.array([0]), "e": np.array([9]), "u": np.array([1]),
            "two": np.array([2]), "f": np.array([1, 1, 4, 3]),
        },
        functions=[function("Twice", [node("Mul", "a a", "b")], "a", "b", "factor")],
    ),
]  # fmt: skip


def attempt(data: bytes) -> None:
    try:
        verify(xlalite.onnx.load(data).module())
    except XlaliteError as error:
        str(error).encode()  # a message that can be printed


@pytest.mark.parametrize("data", MODELS)
def test_the_models_are_sound(data: bytes) -> None:
    assert xlalite.onnx.load(data).module().entry_computation.program_shape.result.is_tuple


@pytest.mark.parametrize("number", range(len(MODELS)))
def test_damaged_bytes_give_errors_of_xlalite(number: int) -> None:
    data, generator = MODELS[number], random.Random(number)
    for _ in range(400):
        damaged = bytearray(data)
        for _ in range(generator.randint(1, 4)):
            place = generator.randrange(len(damaged))
            match generator.randrange(4):
                case 0:
                    damaged[place] ^= 1 << generator.randrange(8)
                case 1:
                    damaged[place] = generator.choice((0, 1, 0x7F, 0x80, 0xFF))
                case 2:
                    del damaged[place : place + generator.randint(1, 9)]
                case _:
                    damaged[place:place] = damaged[place : place + generator.randint(1, 9)]
            if not damaged:
                break
        attempt(bytes(damaged))


@pytest.mark.parametrize("number", range(len(MODELS)))
def test_shortened_files_give_errors_of_xlalite(number: int) -> None:
    data = MODELS[number]
    for end in range(0, len(data), 7):
        attempt(data[:end])


HUGE = 1 << 62


@pytest.mark.parametrize(
    "nodes",
    [
        [node("ConstantOfShape", "big", "y")],
        [node("Expand", "x big", "y")],
        [node("ConstantOfShape", "big", "a"), node("NonZero", "a", "y")],
        [node("ConstantOfShape", "long", "a"), node("NonZero", "a", "y")],
        [node("Tile", "x big", "y")],
        [node("Pad", "x pads", "y")],
        [node("Pad", "x pads", "y", mode="reflect")],
        [node("Range", "zero end one", "y")],
        [node("Range", "zero end one", "a"), node("Unique", "a", "y")],
        [node("OneHot", "zero end two", "y")],
        [node("Resize", "x - scales", "y")],
        [node("EyeLike", "x", "y")],
        [node("Split", "x", "y", num_outputs=0)],
        [node("Reshape", "x minus", "y")],
        [node("Transpose", "x", "y", perm=[0, 0])],
        [node("MaxPool", "x", "y", kernel_shape=[HUGE])],
        [node("AveragePool", "x", "y", kernel_shape=[0])],
        [node("Conv", "x x", "y", group=0)],
        [node("Conv", "x x", "y", pads=[HUGE])],
        [node("Einsum", "x x", "y", equation="ij,jk->")],
        [node("Einsum", "x", "y", equation="...->ij")],
        [node("Cast", "x", "y", to=8)],
        [node("Cast", "x", "y", to=-1)],
        [node("Concat", "x", "y", axis=HUGE)],
        [node("Add", "x", "y")],
        [node("Loop", "end", "y", body=graph([], {}, ""))],
        [node("If", "x", "y", then_branch=graph([], {}, "x"), else_branch=graph([], {}, "y"))],
        [node("Scan", "x", "y", body=graph([], {}, ""), num_scan_inputs=7)],
        [node("SequenceAt", "x zero", "y")],
        [node("LSTM", "x x x", "y", hidden_size=HUGE)],
        [node("Col2Im", "x big big", "y")],
        [node("STFT", "x zero", "y")],
        [node("MelWeightMatrix", "end end end one one", "y")],
        [node("BlackmanWindow", "end", "y")],
        [node("CenterCropPad", "x big", "y")],
    ],
    ids=lambda nodes: " ".join(each.text("op_type") for each in nodes),
)
def test_attributes_and_values_without_a_meaning_give_errors_of_xlalite(nodes: list) -> None:
    constants = {
        "big": np.array([1 << 40, 1 << 40]), "long": np.array([1 << 27]), "pads": np.array([HUGE, HUGE]),
        "zero": np.array(0), "one": np.array(1), "end": np.array(HUGE), "two": np.zeros(2, np.float32),
        "scales": np.array([1e9], np.float32), "minus": np.array([-1, -1]),
    }  # fmt: skip
    with pytest.raises(XlaliteError):
        xlalite.onnx.load(model(nodes, {"x": (F32, [6])}, "y", constants)).module()


def test_names_that_no_encoding_has_are_escaped_in_messages() -> None:
    damaged = MODELS[0].replace(b"Softmax", b"\xffoftmax")
    with pytest.raises(XlaliteError, match=r"importing \\udcffoftmax 'z': there is no rule"):
        xlalite.onnx.load(damaged).module()
