"""Times training steps: `PYTHONPATH=tests python -m interop.torch_bench [--backends eager xlalite] [model ...]`.

Interleaved, best of four seconds, one thread. The step of `mlp` ends with AdamW, compiled, too.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import torch
from interop.torch.models import MODELS

BACKENDS = ("eager", "xlalite", "inductor")


def training_step(model: Any, x: Any, backend: str, *, with_optimizer: bool) -> Callable[[], None]:
    """Loss, gradients, and the optimizer's step where there is one."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0)
    run, update = model, optimizer.step
    if backend != "eager":
        run, update = torch.compile(run, backend=backend), torch.compile(update, backend=backend)

    def step() -> None:
        optimizer.zero_grad()
        run(x).square().mean().backward()
        if with_optimizer:
            update()

    return step


def main() -> None:
    """Prints a line for each model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", default=list(MODELS))
    parser.add_argument("--backends", nargs="*", default=BACKENDS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch._dynamo.config.allow_rnn = True
    for name in options.models:
        torch.manual_seed(0)
        make, make_input = MODELS[name]
        model, x = make(), make_input()
        steps, best = {}, {}
        for backend in options.backends:
            step = training_step(model, x, backend, with_optimizer=name == "mlp")
            start = time.perf_counter()
            try:
                step()
            except Exception as error:
                print(f"{name}: {backend}: {type(error).__name__}: {str(error)[:80]}")
                continue
            print(f"{name}: {backend}: first step {time.perf_counter() - start:.1f} s")
            steps[backend], best[backend] = step, float("inf")
        end = time.perf_counter() + 4
        while time.perf_counter() < end:
            for backend, step in steps.items():
                start = time.perf_counter()
                step()
                best[backend] = min(best[backend], time.perf_counter() - start)
        print(f"{name}: " + ", ".join(f"{backend} {seconds * 1e6:,.0f} µs" for backend, seconds in best.items()))


if __name__ == "__main__":
    main()
