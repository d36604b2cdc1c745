"""What kernels come to of what the machine can do."""

import xml.etree.ElementTree

import pytest

from xlalite.backends.kernel_profile import KernelProfile, KernelTime
from xlalite.backends.roofline import Roofline, measured_roofline, roofline_svg

ROOFLINE = Roofline({"f32": 100.0, "f64": 50.0}, ((1000, 50.0), (10_000, 10.0)))


@pytest.mark.parametrize(
    ("flops", "size", "calls", "share"),
    [
        (1000, 0, 1, 0.1),  # arithmetic alone: 10 ns of 100
        (0, 1000, 1, 0.2),  # in the first cache: 20 ns
        (0, 1000, 2, 0.2),  # two calls of half the size
        (0, 4000, 1, 4.0),  # in the second one: 400 ns
        (0, 50_000, 1, 50.0),  # larger than all: the last rate
        (1000, 1000, 1, 0.2),  # whichever takes longer
    ],
)
def test_share_of_what_is_possible(flops: int, size: int, calls: int, share: float) -> None:
    assert ROOFLINE.share(KernelTime("k", "loop", calls, 100, flops, size)) == pytest.approx(share)
    assert ROOFLINE.share(KernelTime("k", "loop", 0, 0, 0, 0)) == 0.0


@pytest.mark.parametrize(("dtype", "share"), [("f32", 0.1), ("f64", 0.2), ("s32", 0.1)])
def test_types_have_rates_of_their_own(dtype: str, share: float) -> None:
    assert ROOFLINE.share(KernelTime("k", "loop", 1, 100, 1000, 0, dtype)) == pytest.approx(share)


def test_picture_has_a_dot_for_each_kernel_with_arithmetic() -> None:
    kernels = (
        KernelTime("a<b>", "dot", 3, 500, 9000, 700),
        KernelTime("slow", "row", 3, 10**9, 1, 10**9),
        KernelTime("copy", "loop", 3, 100, 0, 700),
        KernelTime("never", "loop", 0, 0, 0, 0),
    )
    svg = roofline_svg(KernelProfile(KernelTime("m", "", 3, 10**9, 0, 0), kernels), ROOFLINE)
    root = xml.etree.ElementTree.fromstring(svg)
    titles = [title.text for circle in root.findall(".//{*}circle") for title in circle]
    assert [title.split(" (")[0] for title in titles if title] == ["slow", "a<b>"]
    assert "18.0 GFLOP/s, 1.4 GB/s" in str(titles[1])
    empty = roofline_svg(KernelProfile(KernelTime("m", "", 0, 0, 0, 0), ()), ROOFLINE)
    assert "<circle" not in empty


def test_the_machine_is_measured_once() -> None:
    measured = measured_roofline(1, ("f64", "s8", "s4"))
    assert set(measured.gflops) == {"f32", "f64", "s8"}
    assert all(rate > 0 for rate in (*measured.gflops.values(), *dict(measured.gbytes).values()))
    assert measured_roofline(1, ("s8", "f64")) == measured
