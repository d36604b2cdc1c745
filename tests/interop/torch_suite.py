"""Runs torch's OpInfo samples compiled and in eager: `python tests/interop/torch_suite.py [entry ...]`.

Without names: the entries that reach torch's core ATen operations; `--all` takes every entry of torch's table. Each is
run with its sample inputs of f32, bf16 and i64, forward, and backward where it has a gradient, by torch.compile with
the backend `xlalite`, and compared with eager as torch's own tests do. Entries that are expected to fail stand in
`EXPECTED`, each with its reason; anything else that fails is told, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import re
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo
from torch.utils import _pytree as pytree

from xlalite.interop.torch import backend as xlalite_backend

_WIDER = {torch.bfloat16: torch.float32, torch.float16: torch.float32}
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "i64": torch.int64}
REACHED = (
    "nn.functional.(adaptive_|avg_|max_)\\w+pool\\w*",
    "nn.functional.(conv|embedding|interpolate|pad|upsample|dropout|grid_sample|unfold|fold|linear|elu|pdist)\\w*",
    "nn.functional.(batch|group|layer|instance|rms)_norm",
    "nn.functional.(cross_entropy|nll_loss|mse_loss|huber_loss|scaled_dot_product_attention|multi_head_attention\\w*)",
    "(log_)?softmax|cdist|__getitem__|index_\\w+|masked_\\w+|fft\\.i?r?fft[2n]?|linalg\\.norm|einsum|matmul",
)
"""Entries whose operation is not a core one itself, but is made of those."""
_DRAWN = "draws random numbers, which are compared by no value"
EXPECTED: dict[str, str] = {
    r"(nn\.functional\.\w*dropout\w*|bernoulli|normal|rand\w*|multinomial|uniform|exponential|geometric)\b.*": _DRAWN,
    r"sort": "without `stable` torch may name any of equal elements",
    r"topk": "of equal elements torch names any",
    r"logcumsumexp": "gradients go through numbers of 10,000, whose last digits are what is compared",
    r"empty\w*(\.\w+)?": "what an empty tensor holds is nobody's business",
}


@dataclass(frozen=True)
class Outcome:
    """What became of an entry with a type.

    Attributes:
        case: Entry and type.
        samples: How many samples ran.
        error: What went wrong, or an empty text.
        is_whole: Whether nothing was left to eager.
    """

    case: str
    samples: int
    error: str
    is_whole: bool


def is_core(entry: OpInfo) -> bool:
    """Whether an entry is, or is made of, core ATen operations."""
    packet = getattr(torch.ops.aten, entry.aten_name, None)
    overloads = packet.overloads() if packet is not None and hasattr(packet, "overloads") else ()
    if any(torch.Tag.core in getattr(packet, name).tags for name in overloads):
        return True
    return any(re.fullmatch(pattern, entry.name) for pattern in REACHED)


def title(entry: OpInfo) -> str:
    """The name of an entry, with its variant."""
    return f"{entry.name}.{entry.variant_test_name}" if entry.variant_test_name else str(entry.name)


def samples(entry: OpInfo, dtype: torch.dtype, *, differentiable: bool, most: int) -> Iterator[tuple[Any, Any]]:
    """Arguments of calls, which are the same each time."""
    torch.manual_seed(0)
    for sample in islice(entry.sample_inputs("cpu", dtype, requires_grad=differentiable), most):
        yield (sample.input, *sample.args), sample.kwargs


def compare(entry: OpInfo, arguments: tuple[Any, Any], backend: str, *, differentiable: bool) -> None:
    """Runs a call compiled and in eager; where types are narrow, eager may use wider ones, too.

    Raises:
        AssertionError: If they differ.
    """
    leaves, structure = pytree.tree_flatten(arguments)
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    narrow = next((one.dtype for one in tensors if one.dtype in _WIDER), torch.float32)

    def call(*given: torch.Tensor) -> Any:
        left = iter(given)
        args, kwargs = pytree.tree_unflatten(
            [next(left) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves], structure
        )
        return entry.op(*args, **kwargs)

    def results(of: Callable[..., Any], given: list[torch.Tensor]) -> list[Any]:
        inputs = [one.detach().requires_grad_(one.requires_grad) for one in given]
        found = [one for one in pytree.tree_leaves(of(*inputs)) if isinstance(one, torch.Tensor)]
        smooth = [one for one in found if one.requires_grad]
        if not (differentiable and smooth):
            return found
        torch.manual_seed(1)
        seeds = [torch.randn(one.shape).to(narrow).to(one.dtype) for one in smooth]
        wanted = [one for one in inputs if one.requires_grad]
        return [*found, *torch.autograd.grad(smooth, wanted, seeds, allow_unused=True)]

    torch._dynamo.reset()
    compiler = xlalite_backend if backend == "xlalite" else backend
    found = results(torch.compile(call, backend=compiler, dynamic=False), tensors)
    expected = [results(call, tensors)]
    if any(one.dtype in _WIDER for one in tensors):
        wide = [one.to(_WIDER.get(one.dtype, one.dtype)).requires_grad_(one.requires_grad) for one in tensors]
        with contextlib.suppress(RuntimeError):  # parts of a storage, which copies do not have
            expected.append(results(call, wide))
    agree(found, expected)


def agree(found: list[Any], expected: list[list[Any]]) -> None:
    """Compares each result with any of those that are right; those of wider arguments are rounded for it.

    Raises:
        AssertionError: If they differ.
    """
    for have, *wanted in zip(found, *expected, strict=True):
        assert all((want is None) == (have is None) for want in wanted), "a gradient is there once only"
        if have is None:
            continue
        for want in wanted:
            try:
                torch.testing.assert_close(have, want.to(have.dtype), equal_nan=True, **tolerance(have.dtype))
                break
            except AssertionError:
                if want is wanted[-1]:
                    raise


def tolerance(dtype: torch.dtype) -> dict[str, float]:
    """What torch's tests of its own compiler allow."""
    if dtype in (torch.bfloat16, torch.float16):
        return {"rtol": 2e-2, "atol": 1e-2}
    if dtype in (torch.float32, torch.complex64):
        return {"rtol": 1.3e-4, "atol": 2e-5}
    return {"rtol": 1e-7, "atol": 1e-7} if dtype.is_floating_point else {"rtol": 0.0, "atol": 0.0}


def run(name: str, dtype_name: str, backend: str, most: int) -> Outcome:
    """Runs the samples of an entry until one is wrong."""
    entry = next(entry for entry in op_db if title(entry) == name)
    dtype, count, error = DTYPES[dtype_name], 0, ""
    differentiable = entry.supports_autograd and dtype in entry.supported_backward_dtypes("cpu")
    try:
        with contextlib.redirect_stderr(None), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for arguments in samples(entry, dtype, differentiable=differentiable, most=most):
                count += 1
                compare(entry, arguments, backend, differentiable=differentiable)
    except Exception as problem:
        lines = str(problem).strip().splitlines() or traceback.format_exc().splitlines()[-1:]
        error = f"sample {count}: {type(problem).__name__}: {' '.join(lines[:4])[:300]}"
    return Outcome(f"{name} {dtype_name}", count, error, is_whole=True)


def main() -> int:
    """Runs the entries in processes and compares what fails with what is expected to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("entries", nargs="*", help="patterns of names of entries, as they stand in torch's table")
    parser.add_argument("--all", action="store_true", help="all entries of the table")
    parser.add_argument("--backend", default="xlalite", help="what compiles")
    parser.add_argument("--dtypes", nargs="*", default=list(DTYPES), choices=list(DTYPES))
    parser.add_argument("--samples", type=int, default=8, help="most samples of each entry")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    options = parser.parse_args()
    chosen = [
        entry
        for entry in op_db
        if (any(re.fullmatch(p, title(entry)) for p in options.entries) if options.entries else True)
        and (options.all or options.entries or is_core(entry))
    ]
    cases = [
        (title(entry), name, options.backend, options.samples)
        for entry in chosen
        for name in options.dtypes
        if DTYPES[name] in entry.supported_dtypes("cpu")
    ]
    counts, failed = Counter[str](), 0
    with multiprocessing.get_context("spawn").Pool(options.workers, maxtasksperchild=40) as pool:
        for outcome in pool.imap_unordered(_run, cases):
            is_expected = any(re.fullmatch(pattern, outcome.case.split()[0]) for pattern in EXPECTED)
            verdict = "passed" if not outcome.error else "expected" if is_expected else "failed"
            counts[verdict] += 1
            if verdict == "failed":
                failed += 1
                print(f"{outcome.case}: {outcome.error}", flush=True)
    print(f"{len(chosen)} entries, {len(cases)} cases: " + ", ".join(f"{n} {what}" for what, n in counts.items()))
    return 1 if failed else 0


def _run(case: tuple[str, str, str, int]) -> Outcome:
    return run(*case)


if __name__ == "__main__":
    sys.exit(main())
