"""Records as notebooks show them."""

from xml.etree import ElementTree

import numpy as np

import xlalite as xl
from xlalite.hlo.record_tables import RecordTable
from xlalite.hlo.types.decision import Decision

PROGRAM = """HloModule m
ENTRY e { x = f32[64,64] parameter(0)
  e = f32[64,64] exponential(x)
  ROOT r = f32[64,64] dot(e, x), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"""


def rows(html: str) -> list[list[str]]:
    """The cells of all tables in some HTML, titles included."""
    root = ElementTree.fromstring(f"<div>{html}</div>")
    return [["".join(cell.itertext()) for cell in row] for row in root.iter("tr")]


def test_a_column_for_each_field() -> None:
    records = RecordTable(
        [Decision("fusion", ("a<b>", "c"), "fused", "saves", {"bytes": 4}), Decision("x", (), "y", "z")]
    )
    assert records[0].verdict == "fused"
    assert rows(records._repr_html_()) == [
        ["decided by", "subject", "verdict", "reason", "numbers"],
        ["fusion", "a<b> → c", "fused", "saves", "bytes=4"],
        ["x", "", "y", "z", ""],
    ]
    assert rows(RecordTable([])._repr_html_()) == []


def test_many_records_are_counted() -> None:
    html = RecordTable([Decision("x", (), "y", "z")] * 1502)._repr_html_()
    assert len(rows(html)) == 501
    assert html.endswith("<p>and 1,002 more</p>")


def test_what_executables_tell() -> None:
    executable = xl.compile(xl.hlo.parse(PROGRAM), options=xl.CompileOptions(profile=True))
    executable(np.ones((64, 64), np.float32))
    assert ["flops", "524,288"] in rows(executable.cost_analysis()._repr_html_())  # type: ignore[attr-defined]  # a Mapping to callers
    assert len(rows(executable.decisions()._repr_html_())) == 1 + len(executable.decisions())  # type: ignore[attr-defined]  # a Sequence
    passes = rows(executable.pass_records()._repr_html_())  # type: ignore[attr-defined]  # a Sequence
    assert passes[0][:4] == ["number", "pipeline", "name", "following"]
    kernels = rows(executable.kernel_profile()._repr_html_())
    assert [kernel[1] for kernel in kernels[1:]] == ["loop", "dot", ""]
    assert [row[0] for row in rows(executable.compile_report()._repr_html_())[4:6]] == ["passes", "buffer assignment"]
    assert ["peak bytes", f"{executable.memory_analysis().peak_bytes:,}"] in rows(
        executable.memory_analysis()._repr_html_()
    )


def test_what_functions_and_sessions_tell() -> None:
    function = xl.jit(lambda x: x + 1)
    function(np.ones(3))
    assert len(rows(function.decisions._repr_html_())) == 2  # type: ignore[attr-defined]  # a Sequence to callers
    with xl.Session() as session:
        session.run(xl.constant(1) + 1)
        assert len(rows(session.decisions()._repr_html_())) == len(session.decisions()) + bool(session.decisions())  # type: ignore[attr-defined]  # a tuple
