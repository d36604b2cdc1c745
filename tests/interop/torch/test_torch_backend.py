"""xlalite as a backend of torch.compile: what it computes, forward and backward, is what torch computes eagerly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

from interop.torch.models import MODELS  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from xlalite.interop.torch import backend, explain  # noqa: E402
from xlalite.interop.torch.backend import observe  # noqa: E402


@pytest.fixture(autouse=True)
def _fresh() -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)


@pytest.fixture
def programs() -> Iterator[list[Any]]:
    """The programs that are compiled meanwhile."""
    found: list[Any] = []
    end = observe(found.append)
    yield found
    end()


DTYPES = ("float32", "float64", "bfloat16", "float16", "int64", "int32", "uint8", "bool", "complex64")
TOLERANCES = {torch.bfloat16: 2e-2, torch.float16: 2e-3}


def agree(function: Callable[..., Any], *arguments: Any, rtol: float = 1e-5, **options: Any) -> None:
    """Compares results, gradients and what becomes of the arguments of a function, compiled and eager."""
    runs = []
    for run in (function, torch.compile(function, backend=backend, **options)):
        own = [argument.detach().clone().requires_grad_(argument.requires_grad) for argument in arguments]
        torch.manual_seed(1)
        out = run(*own)
        results = list(out) if isinstance(out, (tuple, list)) else [out]
        trained = [each for each in results if each.requires_grad]
        if trained:
            weights = [torch.linspace(0.5, 1.5, each.numel()).view(each.shape) for each in trained]
            sum((each * weight).sum() for each, weight in zip(trained, weights, strict=True)).backward()
        runs.append([*results, *own, *(each.grad for each in own if each.grad is not None)])
    for want, have in zip(*runs, strict=True):
        assert have.dtype == want.dtype
        tolerance = max(rtol, TOLERANCES.get(want.dtype, 0))
        torch.testing.assert_close(have.detach(), want.detach(), rtol=tolerance, atol=1e-5, equal_nan=True)


def models_agree(model: nn.Module, *arguments: Any, tolerance: float = 1e-4) -> None:
    """Compares the loss and the gradients of a model's parameters, compiled and eager."""
    found = []
    for run in (model, torch.compile(model, backend=backend)):
        model.zero_grad()
        loss = run(*arguments).square().mean()
        loss.backward()
        found.append([loss.detach(), *(p.grad.clone() for p in model.parameters())])
    for wanted, have in zip(*found, strict=True):
        torch.testing.assert_close(have, wanted, rtol=tolerance, atol=1e-6)


def test_a_network_learns_as_eagerly(programs: list[Any]) -> None:
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 3))
    models_agree(model, torch.randn(5, 8))
    assert [len(program.segments) for program in programs] == [1, 1]
    assert not [decision for program in programs for decision in program.decisions]


def test_the_backend_is_found_by_name() -> None:
    assert "xlalite" in torch.compiler.list_backends()
    assert torch.compile(lambda x: x + 1, backend="xlalite")(torch.zeros(2)).tolist() == [1, 1]


def test_what_has_no_rule_runs_in_torch() -> None:
    def function(x: Any) -> Any:
        return torch.erfinv(x.tanh() * 0.5) * 2 + x

    x = torch.randn(4, 5, requires_grad=True)
    agree(function, x)
    eager = [decision for decision in explain(function, x) if decision.verdict == "eager"]
    assert [decision.subject[1] for decision in eager] == ["aten.erfinv.default"]
    assert eager[0].reason == "no rule"


@pytest.mark.parametrize("dtype", [torch.int64, torch.int8, torch.uint8])
@pytest.mark.parametrize(
    "function",
    [lambda x, y: x // y, lambda x, y: x % y + x // y, torch.fmod, lambda x, y: torch.div(x, y, rounding_mode="trunc")],
)
def test_integers_are_divided_by_tensors_but_not_by_zero(
    function: Any, dtype: torch.dtype, programs: list[Any]
) -> None:
    x, y = torch.arange(-17, 18).to(dtype).reshape(5, 7), torch.tensor([1, -2, 3, -4, 5, -6, 7]).to(dtype)
    compiled, zero = torch.compile(function, backend=backend), torch.tensor([1, 2, 3, 0, 5, 6, 7], dtype=dtype)
    assert torch.equal(compiled(x, y), function(x, y))
    for each in (function, compiled):
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            each(x, zero)
    assert torch.equal(compiled(x, y), function(x, y))
    assert compiled(x[:0], zero).shape == (0, 7)
    assert all(program.is_whole for program in programs)


def test_strided_tensors_go_in_and_out() -> None:
    x = torch.randn(6, 4, 2, requires_grad=True)
    agree(lambda x: x.permute(2, 0, 1).exp(), x)
    agree(lambda x: (x.transpose(0, 1) * 2, x.transpose(0, 2), x[1:3], x[0]), x)
    function = torch.compile(lambda x: x * 2 + 1, backend=backend)
    matrix = torch.randn(4, 6)
    for strided in (matrix.t(), matrix[:, ::2], matrix[:, :1].expand(4, 3), torch.randn(0, 3), torch.randn(())):
        torch.testing.assert_close(function(strided), strided * 2 + 1)


@pytest.mark.parametrize("dtype", DTYPES)
def test_element_types(dtype: str) -> None:
    x = torch.randint(0, 3, (3, 4)).to(getattr(torch, dtype))
    agree(lambda x: (x * x, x + x, x == x.flatten()[0], x.to(torch.float32) if not x.is_complex() else x, x.sum(0)), x)


def test_flags_of_the_environment_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLALITE_FLAGS", f"--xla_dump_to={tmp_path}")
    agree(lambda x: x.sin() + 1, torch.ones(8))
    assert any(tmp_path.iterdir())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_narrow_floats_are_rounded_where_they_are_stored(dtype: Any) -> None:
    """As by inductor; or after each operation, as by eager."""

    def function(x: Any) -> Any:
        return (x * x + x) * x - x

    x = torch.randn(1000).to(dtype)
    eager, exact = function(x), function(x.double())
    fused = torch.compile(function, backend=backend)(x)
    assert (fused - exact).abs().mean() < 0.8 * (eager - exact).abs().mean()
    torch._dynamo.reset()
    with torch._inductor.config.patch(emulate_precision_casts=True):
        assert torch.equal(torch.compile(function, backend=backend)(x), eager)


def test_sizes_that_vary_are_compiled_by_size(programs: list[Any]) -> None:
    function = torch.compile(lambda x, y: (x @ y).softmax(-1), backend=backend, dynamic=True)
    for rows in (3, 5, 3):
        x, y = torch.randn(rows, 4, requires_grad=True), torch.randn(4, 6)
        out = function(x, y)
        torch.testing.assert_close(out, (x @ y).softmax(-1))
        out.sum().backward()
        assert x.grad is not None
    assert len(programs) == 4


def test_arguments_are_mutated() -> None:
    def step(x: Any, y: Any) -> Any:
        x.add_(y)
        y[0].mul_(2)
        return x * y

    agree(step, torch.randn(3, 4), torch.randn(3, 4))


def test_random_numbers_are_those_of_torch() -> None:
    agree(lambda x: F.dropout(x, 0.5) + torch.rand_like(x) * torch.randn(4, 5), torch.randn(4, 5, requires_grad=True))


@pytest.mark.parametrize("is_causal", [False, True])
def test_gradients_of_attention(is_causal: bool) -> None:
    q, k, v = (torch.randn(2, 3, 7, 8, requires_grad=True) for _ in range(3))
    agree(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=is_causal), q, k, v, rtol=1e-4)
    mask = torch.randn(7, 7)
    agree(lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m), q, k, v, mask, rtol=1e-4)


def test_modes_of_torch() -> None:
    model, x = nn.Linear(4, 4), torch.randn(2, 4)
    compiled = torch.compile(model, backend=backend)
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), model(x))
    with torch.inference_mode():
        torch.testing.assert_close(compiled(x), model(x))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        torch.testing.assert_close(compiled(x), model(x), rtol=2e-2, atol=1e-2)
    exported = torch.export.export(model, (x,)).module()
    torch.testing.assert_close(torch.compile(exported, backend=backend)(x), model(x))


@pytest.mark.parametrize("name", ["gpt", "lstm"])
def test_models_are_compiled_as_a_whole_and_learn_as_eagerly(name: str, programs: list[Any]) -> None:
    with torch._dynamo.config.patch(allow_rnn=True):
        make, make_input = MODELS[name]
        models_agree(make(), make_input())
    assert not [str(decision) for program in programs for decision in program.decisions]


def test_programs_that_mix_much() -> None:
    agree(lambda x: (x.view(-1)[2:5].zero_(), x + 1)[1], torch.randn(3, 4))
    agree(lambda x: (x * 2, x.sum(0), torch.cat([x, x])), torch.randn(0, 3))
    agree(lambda x: (x << 2, x >> 1, x // 3, x % 3, x / 7), torch.arange(-6, 6))
    agree(lambda x: (x[:, None] ** x, (-2) ** x, x**5), torch.arange(-6, 6))
    agree(lambda x: (x.max(0)[0], x.argmin(1), x.var(), x.norm(1, 0)), torch.randn(3, 4))
    agree(lambda x: x * x.conj() + x.real, torch.randn(3, dtype=torch.complex64))
    mask = torch.tensor([[True, False, True], [False, False, False], [True, True, True]])
    agree(lambda q, m: F.scaled_dot_product_attention(q, q, q, m), torch.randn(1, 1, 3, 8), mask)


def test_branches_are_compiled_with_the_rest(programs: list[Any]) -> None:
    def inner(x: torch.Tensor, w: torch.Tensor) -> Any:
        return torch.cond(x[0, 0] > -1, lambda x, w: (x * w).sin(), lambda x, w: x.argmax(0) * w, (x, w))

    def outer(x: torch.Tensor, w: torch.Tensor) -> Any:
        return torch.cond(x.sum() > 0, lambda x, w: (x @ w).relu().cumsum(0), inner, (x, w)).exp()

    for factor in (1, -0.2, -3):
        results = []
        for function in (outer, torch.compile(outer, backend=backend)):
            x, w = ((torch.arange(1.0, 17).reshape(4, 4) / 16 * each).requires_grad_() for each in (factor, 0.5))
            y = function(x, w)
            y.sum().backward()
            results.append((y.detach(), x.grad, w.grad))
        torch.testing.assert_close(*results)
    assert programs
    assert all(program.is_whole for program in programs)


def test_branches_that_hold_what_has_no_rule_run_in_torch(programs: list[Any]) -> None:
    held = torch.ones(3)
    for branch in (torch.special.erfcx, lambda x: x + held):
        agree(lambda x, b=branch: torch.cond(x.sum() > 0, b, lambda x: x - 1, (x,)) * 2, torch.ones(3))
    reasons = [decision.reason for program in programs for decision in program.decisions]
    assert any("erfcx: no rule" in reason for reason in reasons)


def test_errors_of_a_branch_are_raised_where_it_is_taken(programs: list[Any]) -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x, y: (x // y) + x[y], lambda x, y: x * y, (x, y)) * 2

    compiled, x = torch.compile(function, backend=backend), torch.tensor([1, 2, 3])
    for sign, good in ((1, (1, 2, -1)), (-1, (1, 0, 7))):
        assert torch.equal(compiled(x * sign, torch.tensor(good)), function(x * sign, torch.tensor(good)))
    for bad in ((1, 0, 2), (1, 3, 2)):
        for each in (compiled, function):
            with pytest.raises((RuntimeError, IndexError)):
                each(x, torch.tensor(bad))
    assert all(program.is_whole for program in programs)


def test_parts_of_an_argument_stay_parts() -> None:
    x = torch.randn(4, 3)
    first, second = torch.compile(lambda x: x.chunk(2), backend=backend)(x)
    first.zero_()
    assert not x[:2].any()
    assert second.data_ptr() == x[2:].data_ptr()


def test_gradients_of_gradients_are_refused() -> None:
    x = torch.randn(3, requires_grad=True)
    (first,) = torch.autograd.grad(torch.compile(lambda x: x.exp(), backend=backend)(x).sum(), x, create_graph=True)
    torch.testing.assert_close(first, x.exp())
    with pytest.raises(RuntimeError, match="does not support double backward"):
        first.sum().backward()


def test_what_is_saved_may_not_be_overwritten() -> None:
    x = torch.randn(3, requires_grad=True)
    y = torch.compile(lambda x: x.exp(), backend=backend)(x)
    y.detach().mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.parametrize(
    "function", [lambda x, w: x.t() @ w, torch.nn.functional.linear, lambda x, w: (x[1:] * w[1:]).sin()]
)
@pytest.mark.parametrize("number", [0, 1])
def test_arguments_of_which_parts_are_saved_may_not_be_overwritten(function: Any, number: int) -> None:
    arguments = [torch.randn(4, 4, requires_grad=True) * 1 for _ in range(2)]
    y = torch.compile(function, backend=backend)(*arguments)
    with torch.no_grad():
        arguments[number].mul_(3)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_arguments_without_a_gradient_end_the_graph() -> None:
    function = torch.compile(lambda x, y: x * y.detach(), backend=backend)
    x, y = torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)
    function(x, y * 2).sum().backward()
    torch.testing.assert_close(x.grad, (y * 2).detach())
    assert y.grad is None


def test_gradients_arrive_in_any_form() -> None:
    function = torch.compile(lambda x: x * x, backend=backend)
    for dtype in (torch.float32, torch.complex64):
        x = torch.randn(3, 4, dtype=dtype, requires_grad=True)
        seed = torch.randn(4, 3, dtype=torch.complex64)
        seeds = [seed.t().imag, seed.conj().t().imag] if dtype is torch.float32 else [seed.t(), seed.conj().t()]
        for each in [*seeds, torch.ones((), dtype=dtype).expand(3, 4)]:
            (want,), (have,) = (torch.autograd.grad(f(x), x, each) for f in (lambda x: x * x, function))
            torch.testing.assert_close(have, want)


def test_results_that_have_no_gradients() -> None:
    def function(x: Any, y: Any) -> Any:
        return x * y, x.argmax(), (x > 0), x.detach() + 1, None, 3

    x, y = torch.randn(4, requires_grad=True), torch.randn(4)
    agree(lambda x, y: function(x, y)[:4], x, y)
    assert [getattr(one, "requires_grad", one) for one in torch.compile(function, backend=backend)(x, y)] == [
        *(True, False, False, False),
        *(None, 3),
    ]


def test_a_step_with_its_backward_pass_is_compiled() -> None:
    model, x = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)), torch.randn(3, 4)

    def step() -> Any:
        model.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        return loss.detach()

    want = [step(), *(p.grad.clone() for p in model.parameters())]
    for compiled_autograd in (False, True):
        torch._dynamo.reset()
        with torch._dynamo.config.patch(compiled_autograd=compiled_autograd):
            have = [torch.compile(step, backend=backend)(), *(p.grad.clone() for p in model.parameters())]
        for a, b in zip(have, want, strict=True):
            torch.testing.assert_close(a, b)


def test_a_backward_pass_with_torchs_own_operations() -> None:
    def function(x: Any) -> Any:
        return torch.special.entr(x.exp()) * x

    x = torch.rand(4, 3, requires_grad=True)
    for make in (
        lambda y: y.sum(),
        lambda y: (y.t() * torch.rand(3, 4, generator=torch.Generator().manual_seed(0))).sum(),
    ):
        (want,), (have,) = (
            torch.autograd.grad(make(f(x)), x) for f in (function, torch.compile(function, backend=backend))
        )
        torch.testing.assert_close(have, want)
