"""Times ONNX models beside onnxruntime: `PYTHONPATH=tests python -m interop.onnx_bench [model.onnx ...]`.

Without names: a ResNet-50 and an encoder of BERT's size, written by torch's exporter. Two threads; blocks of calls
alternate, for the threads of onnxruntime spin for a while after each of its calls.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

import xlalite

_BLOCKS, _CALLS, _PAUSE = 8, 4, 0.15


def export_models(directory: Path) -> list[Path]:
    """Writes the two models, with random weights."""
    import torch
    from interop.torch.models import TransformerBlock
    from torch import nn
    from torch.nn import functional

    class Bottleneck(nn.Module):
        def __init__(self, taken: int, width: int, stride: int) -> None:
            super().__init__()
            given = 4 * width
            sizes = ((taken, width, 1, 1), (width, width, 3, stride), (width, given, 1, 1))
            self.parts = nn.ModuleList(_convolution(*each) for each in sizes)
            is_same = stride == 1 and taken == given
            self.shortcut = nn.Identity() if is_same else _convolution(taken, given, 1, stride)

        def forward(self, x: Any) -> Any:
            first, second, third = self.parts
            return functional.relu(third(functional.relu(second(functional.relu(first(x))))) + self.shortcut(x))

    def _convolution(taken: int, given: int, size: int, stride: int) -> nn.Module:
        return nn.Sequential(nn.Conv2d(taken, given, size, stride, size // 2, bias=False), nn.BatchNorm2d(given))

    torch.manual_seed(0)
    blocks, taken = [_convolution(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
    for width, count in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for number in range(count):
            blocks.append(Bottleneck(taken, width, 2 if width > 64 and not number else 1))
            taken = 4 * width
    resnet = nn.Sequential(*blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(taken, 1000))
    layers = [TransformerBlock(768, 12, is_causal=False) for _ in range(12)]
    encoder = nn.Sequential(nn.Embedding(30522, 768), nn.LayerNorm(768), *layers)
    found = []
    for name, model, x in (
        ("resnet50", resnet, torch.randn(1, 3, 224, 224)),
        ("encoder", encoder, torch.randint(0, 30000, (1, 128))),
    ):
        found.append(directory / f"{name}.onnx")
        torch.onnx.export(model.eval(), (x,), str(found[-1]), input_names=["x"], dynamo=True)
    return found


def compare(path: Path) -> str:
    """Times a model by both, and says how far their results are apart."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    random = np.random.default_rng(0)
    feeds = {}
    for one in session.get_inputs():
        sizes = [size if isinstance(size, int) else 1 for size in one.shape]
        is_float = one.type == "tensor(float)"
        feeds[one.name] = random.normal(size=sizes).astype(np.float32) if is_float else random.integers(0, 1000, sizes)
    model = xlalite.onnx.load(path, options=xlalite.CompileOptions(num_threads=2))
    start = time.perf_counter()
    own = model.run(feeds)
    first = time.perf_counter() - start
    error = max(np.abs(a - b).max() for a, b in zip(own.values(), session.run(None, feeds), strict=True))
    ours, theirs = _alternate(lambda: model.run(feeds), lambda: session.run(None, feeds))
    return (
        f"{path.stem}: xlalite {ours * 1e3:.1f} ms, onnxruntime {theirs * 1e3:.1f} ms, ratio {ours / theirs:.2f}; "
        f"first call {first:.1f} s; largest difference {error:.1e}"
    )


def _alternate(*functions: Callable[[], object]) -> list[float]:
    best = [float("inf")] * len(functions)
    for _ in range(_BLOCKS):
        for number, function in enumerate(functions):
            time.sleep(_PAUSE)
            function()
            for _ in range(_CALLS):
                start = time.perf_counter()
                function()
                best[number] = min(best[number], time.perf_counter() - start)
    return best


def main(names: list[str]) -> None:
    """Prints a line for each model."""
    with tempfile.TemporaryDirectory() as directory:
        for path in [Path(name) for name in names] or export_models(Path(directory)):
            print(compare(path), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
