from dataclasses import replace

import pytest

from xlalite.backends.base import CompileOptions
from xlalite.backends.codegen.llvm import TargetInfo
from xlalite.backends.cpu.compilation.pass_table import CPU_PASSES
from xlalite.backends.cpu.compilation.pipeline import cpu_pipeline
from xlalite.hlo.errors import PassError
from xlalite.hlo.text import parse
from xlalite.passes.core.insertion import passes_of
from xlalite.passes.core.late_pass import late
from xlalite.passes.core.pipeline import Pipeline
from xlalite.passes.normalization.scan_expander import ScanExpander
from xlalite.passes.preparation.convolution_winograd import ConvolutionWinograd

SCAN = "xlalite.passes.normalization.scan_expander:ScanExpander"
CALLS = """HloModule calls

f {
  ROOT x = f32[4] parameter(0)
}

ENTRY e {
  y = f32[4] parameter(0)
  ROOT c = f32[4] call(y), to_apply=f
}
"""


def test_a_late_pass_has_the_name_of_its_class_and_is_made_once() -> None:
    late_pass = late(SCAN, "scan")()
    assert late_pass.name == ScanExpander.name
    assert late_pass.loaded() == ScanExpander()
    assert late_pass.loaded() is late(SCAN, "scan")().loaded()


@pytest.mark.parametrize(("opcodes", "name"), [(("call",), ""), (("scan",), "scanner"), ((), "")])
def test_a_pipeline_that_says_something_else_than_the_class_is_refused(opcodes: tuple[str, ...], name: str) -> None:
    with pytest.raises(
        PassError, match=r"ScanExpander: its pipeline expects .* declares 'scan-expander' about \['scan'\]"
    ):
        late(SCAN, *opcodes, name=name)().loaded()


def test_the_pipeline_of_the_cpu_says_of_each_pass_what_its_class_does() -> None:
    options = CompileOptions()
    options = replace(options, debug=replace(options.debug, cpu_winograd=2))
    passes = tuple(passes_of(cpu_pipeline(options, TargetInfo.host())))
    assert {one.name for one in passes} <= CPU_PASSES.keys()
    assert ConvolutionWinograd(2) in passes


def test_a_late_pass_runs_where_there_is_something_of_it() -> None:
    module = parse(CALLS)
    pipeline = Pipeline("p", (late("xlalite.passes.normalization.call_inliner:CallInliner", "call")(),))
    assert pipeline.run(module)
    assert [one.opcode for one in module.instructions()] == ["parameter"]
    assert not pipeline.run(module)


def test_a_late_pass_without_anything_to_do_is_not_imported() -> None:
    pipeline = Pipeline("p", (late("xlalite.nowhere:Nothing", "scan")(),))
    assert not pipeline.run(parse(CALLS))
