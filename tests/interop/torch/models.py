"""Small networks of the usual kinds, compared with eager execution and timed by `tests/interop/torch_bench.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional


class ResidualBlock(nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, taken: int, given: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(taken, given, 3, stride, 1, bias=False), nn.BatchNorm2d(given), nn.ReLU())
        self.second = nn.Sequential(nn.Conv2d(given, given, 3, 1, 1, bias=False), nn.BatchNorm2d(given))
        projection = nn.Sequential(nn.Conv2d(taken, given, 1, stride, bias=False), nn.BatchNorm2d(given))
        self.shortcut = projection if stride > 1 or taken != given else nn.Identity()

    def forward(self, x: Any) -> Any:
        return functional.relu(self.second(self.first(x)) + self.shortcut(x))


def resnet18() -> nn.Module:
    stem = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    sizes = [64, 64, 64, 128, 128, 256, 256, 512, 512]
    blocks = [ResidualBlock(sizes[i], sizes[i + 1], 2 if i in (2, 4, 6) else 1) for i in range(8)]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))


class TransformerBlock(nn.Module):
    """Attention and two dense layers, normalised behind them (BERT) or before them (GPT)."""

    def __init__(self, size: int, heads: int, *, is_causal: bool) -> None:
        super().__init__()
        self.heads, self.is_causal = heads, is_causal
        self.qkv, self.out = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.norms = nn.ModuleList([nn.LayerNorm(size), nn.LayerNorm(size)])
        self.dense = nn.Sequential(
            nn.Linear(size, 4 * size), nn.GELU("tanh" if is_causal else "none"), nn.Linear(4 * size, size)
        )

    def attention(self, x: Any) -> Any:
        batch, length, size = x.shape
        parts = self.qkv(x).chunk(3, -1)
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in parts)
        found = functional.scaled_dot_product_attention(q, k, v, is_causal=self.is_causal)
        return self.out(found.transpose(1, 2).reshape(batch, length, size))

    def forward(self, x: Any) -> Any:
        first, second = self.norms
        if self.is_causal:
            x = x + self.attention(first(x))
            return x + self.dense(second(x))
        x = first(x + self.attention(x))
        return second(x + self.dense(x))


class Bert(nn.Module):
    """Embeddings and two blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places, self.norm = nn.Embedding(1000, 256), nn.Embedding(128, 256), nn.LayerNorm(256)
        self.blocks = nn.Sequential(*(TransformerBlock(256, 4, is_causal=False) for _ in range(2)))

    def forward(self, words: Any) -> Any:
        return self.blocks(self.norm(self.words(words) + self.places(torch.arange(words.shape[1]))))


class Lstm(nn.Module):
    """Two recurrent layers; their last state is classified."""

    def __init__(self) -> None:
        super().__init__()
        self.layers, self.dense = nn.LSTM(64, 128, 2, batch_first=True), nn.Linear(128, 10)

    def forward(self, x: Any) -> Any:
        return self.dense(self.layers(x)[0][:, -1])


def convnet() -> nn.Module:
    first = [nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)]
    second = [nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(1)]
    return nn.Sequential(*first, *second, nn.Flatten(), nn.Linear(32, 10))


def mlp() -> nn.Module:
    first = [nn.Linear(784, 256), nn.GELU(), nn.LayerNorm(256)]
    return nn.Sequential(*first, nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[], Any]]] = {
    "resnet18": (resnet18, lambda: torch.randn(2, 3, 96, 96)),
    "bert": (Bert, lambda: torch.randint(0, 1000, (4, 64))),
    "gpt": (lambda: TransformerBlock(256, 4, is_causal=True), lambda: torch.randn(4, 64, 256)),
    "lstm": (Lstm, lambda: torch.randn(8, 12, 64)),
    "convnet": (convnet, lambda: torch.randn(16, 1, 28, 28)),
    "mlp": (mlp, lambda: torch.randn(128, 784)),
    "tiny": (lambda: nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8)), lambda: torch.randn(4, 8)),
}
