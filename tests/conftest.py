"""What every test shares: the report header, `--bless`, `--isa`, and fixtures."""

import os
import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import transforming
from large_modules import FORMS
from op_cases import OP_CASES
from random_modules import make_basic_module, make_random_arguments, require_same_bits

import xlalite
import xlalite.ops
from xlalite.backends.codegen.llvm import TargetInfo, target
from xlalite.framework.graph.graph import Graph
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.ir.op import Evaluator
from xlalite.hlo.surroundings.custom_calls import CUSTOM_CALLS, custom_call
from xlalite.hlo.types.literal import Value
from xlalite.passes.core.debug_options import CPU_ISAS

# Tests neither use nor fill the cache of whoever runs them.
os.environ["XLALITE_CACHE_DIR"] = tempfile.mkdtemp(prefix="xlalite-test-cache-")

# NumPy in other processes, the workers of a run among them, multiplies alone: its threads would wait for each other,
# spinning, on the cores that the workers share.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

CACHE_BYTES = (32 << 10, 1 << 20, 32 << 20)
"""The caches for which tests compile, whatever the machine has: which kernels there are depends on them."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--bless",
        action="store_true",
        help="rewrite the expected outputs that tests compare exactly",
    )
    parser.addoption(
        "--isa",
        choices=CPU_ISAS,
        help="run on this machine as if it knew no newer vector instructions",
    )


def pytest_configure(config: pytest.Config) -> None:
    target.host_cache_bytes = lambda: CACHE_BYTES
    if config.getoption("--isa"):
        limited = TargetInfo.host(config.getoption("--isa"))
        target._host = lambda: limited  # type: ignore[assignment]


def pytest_report_header(config: pytest.Config) -> str:
    # An editable install can serve one work tree's tests with the code of another: say whose code runs.
    return f"xlalite: {xlalite.__file__}"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs a test that takes `op_case` for every record of `op_cases.py`, and if it takes `op_dtype` for each type."""
    if "op_case" not in metafunc.fixturenames:
        return
    cases = [(f"{case.opcode}{number}", case) for number, case in enumerate(OP_CASES)]
    if "op_dtype" not in metafunc.fixturenames:
        metafunc.parametrize("op_case", [pytest.param(case, id=name) for name, case in cases])
        return
    pairs = [pytest.param(case, dtype, id=f"{name}-{dtype.value}") for name, case in cases for dtype in case.dtypes]
    metafunc.parametrize(("op_case", "op_dtype"), pairs)


@pytest.fixture(scope="session")
def op_cases() -> tuple[Any, ...]:
    """All records of `op_cases.py`."""
    return OP_CASES


@pytest.fixture(scope="session")
def random_arguments() -> Callable[..., list[Value]]:
    """Arguments for a module, special numbers among them: `random_arguments(module, seed=7)`."""
    return make_random_arguments


@pytest.fixture(scope="session")
def assert_same_bits() -> Callable[[Value, Value, str], None]:
    """Compares values bit by bit; every NaN equals every other."""
    return require_same_bits


@pytest.fixture(scope="session")
def transform() -> Callable[..., Any]:
    """`transform(hlo_pass, text or module, idempotent=True, evaluated=True)`: runs a pass under every check."""
    return transforming.transform


@pytest.fixture(scope="session")
def random_module() -> Callable[[random.Random, int], HloModule]:
    """Builds a random valid module with about the given number of operations."""
    return make_basic_module


@pytest.fixture(scope="session")
def large_modules() -> dict[str, Callable[[int], str]]:
    """HLO texts of any size, by the name of their form."""
    return FORMS


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the work tree."""
    return Path(__file__).resolve().parents[1]


@pytest.fixture
def rng() -> np.random.Generator:
    """Random numbers with a fixed seed."""
    return np.random.default_rng(20260101)


@pytest.fixture
def custom_target() -> Iterator[Callable[[str, Evaluator], None]]:
    """`custom_target(name, function)`: what a custom-call target means until the end of the test."""
    names: list[str] = []

    def register(name: str, function: Evaluator) -> None:
        custom_call(name)(function)
        names.append(name)

    yield register
    for name in names:
        del CUSTOM_CALLS[name]


@pytest.fixture
def graph() -> Iterator[Graph]:
    """An empty graph, the default one during the test; operations and operators are declared."""
    assert xlalite.ops.functions.operators is not None
    with Graph().as_default() as default:
        yield default


@pytest.fixture
def bless(request: pytest.FixtureRequest) -> bool:
    """Whether `--bless` was given."""
    return bool(request.config.getoption("--bless"))


@pytest.fixture(scope="session")
def run_with_xla() -> Callable[..., list[np.ndarray]]:
    """`run_with_xla(text, *arrays)`: the flattened results of an HLO module as XLA's own CPU compiler computes them.

    Skips the test where jax is not installed. Use it in tests marked `oracle`.
    """
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    jax = pytest.importorskip("jax")
    from jaxlib import _hlo, _jax

    def run(text: str, *arrays: np.ndarray) -> list[np.ndarray]:
        computation = _hlo.XlaComputation(_hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto())
        device = jax.devices("cpu")[0]
        executable = device.client.compile_and_load(
            _jax.mlir.xla_computation_to_mlir_module(computation), _jax.DeviceList((device,))
        )
        # Not for the whole process: other tests rely on jax's own default.
        with jax.enable_x64(True):
            results = executable.execute_sharded([jax.device_put(array, device) for array in arrays])
        return [np.asarray(parts[0]) for parts in results.disassemble_into_single_device_arrays()]

    return run


@pytest.fixture
def expect_file(bless: bool) -> Callable[[Path, str], None]:
    """Compares a text with a file of expected output, or rewrites the file under `--bless`."""

    def compare(path: Path, text: str) -> None:
        if bless:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        assert path.exists(), f"{path} is missing; --bless writes it"
        assert text == path.read_text(encoding="utf-8"), f"differs from {path}; --bless rewrites it"

    return compare
