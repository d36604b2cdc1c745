"""What the memory tests share: kernels that run in guarded memory, many in one module, and their comparison."""

import dataclasses
import pickle
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pytest
from nested_arrays import leaves

from xlalite.backends.arguments import nested_value
from xlalite.backends.codegen.llvm import TargetInfo, target
from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.ops import OPS
from xlalite.hlo.ops.structural import ParameterAttrs
from xlalite.hlo.text import parse
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Value
from xlalite.hlo.types.shape import Shape

_BATCH = 48


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A program to run in guarded memory: parameters and results are arrays, or tuples of them.

    Attributes:
        text: The program.
        arguments: Its arguments.
        check: Compares what was found with what the evaluator says, and raises AssertionError.
    """

    text: str
    arguments: tuple[Value, ...]
    check: Callable[[object, object], None]


class GuardedRun:
    """Runs kernels in a process of its own, and starts another one when a kernel's fault ends it."""

    def __init__(self, cache_bytes: Sequence[int]) -> None:
        """Starts no process yet; it will compile for these caches."""
        self._cache_bytes = cache_bytes
        self._process: subprocess.Popen[bytes] | None = None
        self.kernels = 0

    def __call__(
        self, kernels: Sequence[Kernel], *, isa: str = "", optimize: bool = False, kinds: Collection[str] = ()
    ) -> None:
        """Asserts that each kernel gives what the evaluator gives and touches nothing but its arrays.

        Without `optimize`, each instruction is a kernel of its own. With `kinds`, there are none but of these.
        """
        for start in range(0, len(kernels), _BATCH):
            fault = self._first_fault(kernels[start : start + _BATCH], isa, optimize, kinds)
            assert fault is None, f"isa {isa or 'of this machine'}: {fault}"
        self.kernels += len(kernels)

    def close(self) -> None:
        """Ends the process."""
        if self._process is not None:
            self._process.communicate()
            self._process = None

    def _first_fault(self, kernels: Sequence[Kernel], isa: str, optimize: bool, kinds: Collection[str]) -> str | None:
        """What is wrong with one of the kernels, found by running all at once, and halves of them if something is."""
        try:
            problem = self._problem(kernels, isa, optimize, kinds)
        except (AssertionError, RuntimeError, ChildProcessError) as error:
            problem = str(error)
        if not problem:
            return None
        if len(kernels) == 1:
            return f"{kernels[0].text}\n{problem}"
        middle = len(kernels) // 2
        for half in (kernels[:middle], kernels[middle:]):
            fault = self._first_fault(half, isa, optimize, kinds)
            if fault is not None:
                return fault
        return f"{len(kernels)} kernels, only together: {problem}"

    def _problem(self, kernels: Sequence[Kernel], isa: str, optimize: bool, kinds: Collection[str]) -> str:
        modules = [parse(kernel.text) for kernel in kernels]
        flat = [leaf for kernel in kernels for argument in kernel.arguments for leaf in leaves(argument)]
        results, overruns, found_kinds = self._ask(
            (join_modules(modules).to_string("short_parsable"), isa, optimize, flat, bool(kinds))
        )
        assert not kinds or found_kinds == set(kinds), f"kernels of the kinds {sorted(found_kinds)}"
        arrays = iter(results)
        for kernel, module in zip(kernels, modules, strict=True):
            found = nested_value(module.entry_computation.root.shape, arrays)
            with np.errstate(all="ignore"):
                expected = evaluate(module, *kernel.arguments)
            kernel.check(found, expected)
        return "; ".join(overruns)

    def on_devices(self, text: str, arguments: Sequence[Sequence[np.ndarray]], isa: str) -> list[np.ndarray]:
        """The results of a program on all its devices, of which each has memory of its own."""
        results, overruns, _ = self._ask((text, isa, True, [array for given in arguments for array in given], False))
        assert not overruns, f"isa {isa or 'of this machine'}: {text}\n{'; '.join(overruns)}"
        return results

    def _ask(self, request: object) -> tuple[list[np.ndarray], list[str], set[str]]:
        if self._process is None:
            command = [sys.executable, str(Path(__file__).with_name("worker.py")), *map(str, self._cache_bytes)]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        pickle.dump(request, process.stdin)
        process.stdin.flush()
        try:
            answer = pickle.load(process.stdout)
        except EOFError:
            self.close()
            raise ChildProcessError(
                f"the process ended with status {process.returncode}: memory beyond an array"
            ) from None
        if isinstance(answer, RuntimeError):
            raise answer
        return answer


def join_modules(modules: Sequence[HloModule]) -> HloModule:
    """One module of independent parts: all parameters in order, and a tuple of the results."""
    joined = HloModule("joined")
    entry = HloComputation("entry")
    roots, count = [], 0
    for module in modules:
        copies: dict[HloComputation, HloComputation] = {}

        def called(
            computation: HloComputation, copies: dict[HloComputation, HloComputation] = copies
        ) -> HloComputation:
            if computation not in copies:
                copies[computation] = joined.add(computation.clone(called=lambda inner: called(inner, copies)))
            return copies[computation]

        twins: dict[HloInstruction, HloInstruction] = {}
        for parameter in module.entry_computation.parameters:
            attrs = ParameterAttrs(count)
            twins[parameter] = entry.add(
                HloInstruction(OPS["parameter"], parameter.shape, attrs=attrs, name=f"p{count}")
            )
            count += 1
        for instruction in module.entry_computation.post_order():
            if instruction not in twins:
                operands = [twins[operand] for operand in instruction.operands]
                callees = [called(computation) for computation in instruction.called_computations]
                twins[instruction] = entry.add(instruction.clone(operands, called_computations=callees))
        roots.append(twins[module.entry_computation.root])
    shape = Shape.tuple([root.shape for root in roots])
    entry.set_root(entry.add(HloInstruction(OPS["tuple"], shape, roots)))
    joined.add(entry, entry=True)
    return joined


@pytest.fixture(scope="session")
def run_guarded() -> Iterator[GuardedRun]:
    """Runs kernels between guard pages."""
    run = GuardedRun(target.host_cache_bytes())
    yield run
    run.close()


@pytest.fixture(scope="session")
def run_streaming() -> Iterator[GuardedRun]:
    """The same on a machine whose last cache holds a byte: kernels store whatever they may past it."""
    run = GuardedRun((*target.host_cache_bytes()[:2], 1))
    yield run
    run.close()


class MakeKernel(Protocol):
    """Makes a kernel of a program text and compares its results bit by bit.

    Arguments are random: special numbers among them, without `nan` no NaN, or `whole` numbers whose sums are exact.
    """

    def __call__(self, text: str, *, nan: bool = True, whole: bool = False) -> Kernel: ...


@pytest.fixture(scope="session")
def make_kernel(
    random_arguments: Callable[..., list[Value]], assert_same_bits: Callable[[Value, Value, str], None]
) -> MakeKernel:
    """A kernel of a program text."""

    def make(text: str, *, nan: bool = True, whole: bool = False) -> Kernel:
        module = parse(text)
        arguments = random_arguments(module, seed=len(text))
        if not nan:
            arguments = [np.where(np.isnan(array), array.dtype.type(1), array) for array in arguments]
        if whole:
            rng = np.random.default_rng(len(text))
            shapes = [parameter.shape for parameter in module.entry_computation.parameters]
            arguments = [np.asarray(rng.integers(0, 4, shape.dims)).astype(shape.dtype.numpy) for shape in shapes]
        return Kernel(text, tuple(arguments), lambda found, expected: assert_same_bits(expected, found, text))

    return make


@pytest.fixture(scope="session")
def record_kernel() -> Callable[[Any, DType, str], Kernel]:
    """A kernel of a record of `op_cases.py`, in its own text or another, compared as the record says."""

    def make(record: Any, dtype: DType, text: str) -> Kernel:
        arguments = record.arguments(parse(text), dtype, np.random.default_rng(len(text)))
        return Kernel(text, tuple(arguments), record.check)

    return make


def widths() -> list[str]:
    """An instruction set for each width of vectors that this machine has; empty on machines other than x86-64."""
    host = TargetInfo.host()
    if not host.triple.startswith("x86_64"):
        return [""]
    return ["SSE2", *(["AVX2"] if host.has("avx2") else []), *(["AVX512"] if host.vector_bits == 512 else [])]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs a test that takes `isa` once for each width of vectors, and one that takes `product_isa` on all of the
    machine, too, which may have instructions for products.
    """
    if "isa" in metafunc.fixturenames:
        metafunc.parametrize("isa", widths())
    if "product_isa" in metafunc.fixturenames:
        metafunc.parametrize("product_isa", dict.fromkeys((*widths(), "")))
