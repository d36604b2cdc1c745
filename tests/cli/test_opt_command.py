"""`xlalite opt`."""

import io
from collections.abc import Callable
from pathlib import Path

import pytest

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.backends.codegen.llvm import TargetInfo
from xlalite.backends.cpu.compilation.pipeline import cpu_pipeline
from xlalite.cli.pass_list import parse_passes
from xlalite.cli.reading import split_text
from xlalite.hlo.text import parse
from xlalite.passes.core.pipeline import pass_names
from xlalite.passes.fusion import Fusion

STAGES = tuple(get_backend("cpu").stages)


def test_whole_pipeline_as_hlo_that_reads_back(softmax: Path, xlalite: Callable[..., object]) -> None:
    ran = xlalite("opt", softmax)
    assert ran.code == 0
    assert parse(ran.out).entry_computation.root.opcode == "fusion"


def test_only_the_passes_that_are_named(softmax: Path, xlalite: Callable[..., object]) -> None:
    ran = xlalite("opt", softmax, "--passes=dce,cse")
    assert "fusion(" not in ran.out
    assert "divide(" in ran.out


def test_pass_options_come_from_the_pass_s_fields(softmax: Path, xlalite: Callable[..., object]) -> None:
    one = xlalite("opt", softmax, "--passes=fusion").out.count(" fusion(")
    several = xlalite("opt", softmax, "--passes=fusion{max_members=2}").out.count(" fusion(")
    assert (one, several) == (1, 4)


@pytest.mark.parametrize(
    "words", [("--stage=hlo",), ("--stage=hlo-backend",), ("--passes=dce",), ("--platform=interpreter",)]
)
def test_large_constants_are_written_on_request(
    words: tuple[str, ...], tmp_path: Path, xlalite: Callable[..., object]
) -> None:
    file = tmp_path / "f.hlo"
    numbers = ", ".join(map(str, range(20, 0, -1)))
    file.write_text(
        f"ENTRY e {{ x = s32[20] parameter(0)\n c = s32[20] constant({{{numbers}}})\n ROOT r = add(x, c) }}"
    )
    assert numbers not in xlalite("opt", file, *words).out
    assert numbers in xlalite("opt", file, *words, "--xla_dump_large_constants").out


def test_pass_lists_are_read() -> None:
    stages = parse_passes(" dce , fusion{max_members=3, dot_epilogues} ,normalization", get_backend("cpu").passes)
    assert [stage.name for stage in stages] == ["dce", "fusion", "normalization"]
    assert stages[1] == Fusion(max_members=3, dot_epilogues=True)


@pytest.mark.parametrize(
    ("passes", "message"),
    [
        ("fusoin", "there is no pass 'fusoin'; did you mean 'fusion'?"),
        ("fusion{max_membrs=2}", "fusion has no option 'max_membrs'; did you mean 'max_members'?"),
        ("fusion{max_members=two}", "fusion{max_members=two}: expected an integer"),
        ("fusion{dot_epilogues=2}", "fusion{dot_epilogues=2}: expected true or false"),
        ("dce{fuel=3}", "dce has no option 'fuel'; it has none"),
        ("normalization{a=1}", "the pipeline normalization takes no options"),
        ("dce,{x}", "expected pass or pass{option=value,...}, found '{x}'"),
        ("", "expected the name of a pass"),
    ],
)
def test_wrong_pass_lists(passes: str, message: str, softmax: Path, xlalite: Callable[..., object]) -> None:
    ran = xlalite("opt", softmax, f"--passes={passes}")
    assert ran.code == 2
    assert message in ran.err


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_has_a_text(stage: str, softmax: Path, xlalite: Callable[..., object]) -> None:
    ran = xlalite("opt", softmax, f"--stage={stage}")
    assert ran.code == 0
    assert xlalite("opt", softmax, f"--stage={stage.replace('-', '_')}").out == ran.out
    shown = {
        "hlo": "HloModule",
        "schedule": "Schedule",
        "buffer-assignment": "BufferAssignment",
        "asm": "xlalite_entry",
    }
    assert shown.get(stage.split("-backend")[0], "define" if "llvm" in stage else "HloModule") in ran.out


def test_stage_behind_chosen_passes_adds_only_what_code_needs(softmax: Path, xlalite: Callable[..., object]) -> None:
    plain = xlalite("opt", softmax, "--passes=dce", "--stage=hlo-backend").out
    fused = xlalite("opt", softmax, "--passes=fusion", "--stage=hlo-backend").out
    assert "is_scheduled=true" in plain
    assert " fusion(" not in plain
    assert " fusion(" in fused


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--stage=lvm"], "--stage: platform cpu has no stage 'lvm'; did you mean 'llvm'?"),
        (["--stage=asm", "--platform=interpreter"], "interpreter has no stage 'asm'; the stages are hlo-before"),
        (["--xla_disable_hlo_passes=fuson"], "disable_hlo_passes: there is no pass 'fuson'; did you mean 'fusion'?"),
        (["-o", "/nowhere/out"], "/nowhere/out: No such file or directory"),
    ],
)
def test_wrong_options(arguments: list[str], message: str, softmax: Path, xlalite: Callable[..., object]) -> None:
    ran = xlalite("opt", softmax, *arguments)
    assert ran.code == 2
    assert message in ran.err


def test_standard_input_and_output_file(
    softmax: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, xlalite: Callable[..., object]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(softmax.read_bytes())))
    ran = xlalite("opt", "-", "--passes=dce", "-o", tmp_path / "out.hlo")
    assert (ran.code, ran.out) == (0, "")
    assert parse((tmp_path / "out.hlo").read_text()).name == "softmax"


def test_split_input(tmp_path: Path, xlalite: Callable[..., object]) -> None:
    parts = [f"HloModule m{i}\nENTRY e {{\n  ROOT p = f32[{i}] parameter(0)\n}}\n" for i in range(3)]
    (tmp_path / "f.hlo").write_text("// -----\n".join(parts))
    out = xlalite("opt", tmp_path / "f.hlo", "--split-input-file", "--passes=dce").out
    assert [parse(text).name for text in out.split("// -----\n")] == ["m0", "m1", "m2"]


def test_parts_of_a_file_keep_their_line_numbers(tmp_path: Path, xlalite: Callable[..., object]) -> None:
    good = "HloModule a\nENTRY e {\n  ROOT p = f32[] parameter(0)\n}\n"
    text = f"{good}// -----\nHloModule b\nENTRY e {{\n  ROOT p = f33[]\n}}\n"
    (tmp_path / "f.hlo").write_text(text)
    ran = xlalite("opt", tmp_path / "f.hlo", "--split-input-file")
    assert f"{tmp_path / 'f.hlo'}: line 8, column 12: " in ran.err
    assert "".join(part.lstrip("\n") for part in split_text(text)) == text.replace("// -----\n", "")


def test_malformed_hlo_shows_line_column_and_caret(
    hlo_file: Callable[..., Path], xlalite: Callable[..., object]
) -> None:
    path = hlo_file("  a = f32[2] parameter(0)\n  ROOT b = f32[2] ad(a, a)")
    ran = xlalite("opt", path)
    assert ran.code == 2
    assert ran.err.splitlines() == [
        f"xlalite opt: error: {path}: line 5, column 19: unknown operation 'ad'; did you mean 'pad'?",
        "    ROOT b = f32[2] ad(a, a)",
        "                    ^",
    ]


def test_invalid_and_foreign_files(
    tmp_path: Path, hlo_file: Callable[..., Path], xlalite: Callable[..., object]
) -> None:
    invalid = hlo_file("  a = f32[2] parameter(0)\n  ROOT b = f32[3] add(a, a)")
    assert xlalite("opt", invalid).err.startswith(f"xlalite opt: error: {invalid}: ")
    (tmp_path / "binary").write_bytes(b"\x0a\xffproto")
    ran = xlalite("opt", tmp_path / "binary")
    assert ran.code == 2
    assert "expected HLO or StableHLO text in UTF-8, found byte 0xff at 1" in ran.err
    assert xlalite("opt", tmp_path).code == 2


def test_explain_and_time_go_to_standard_error(softmax: Path, xlalite: Callable[..., object]) -> None:
    ran = xlalite("opt", softmax, "--explain", "--time")
    assert "fusion: d -> q: fused: " in ran.err
    assert "algebraic-simplifier " in ran.err
    parse(ran.out)


def test_html_is_one_page_without_links_to_files(softmax: Path, tmp_path: Path, xlalite: Callable[..., object]) -> None:
    ran = xlalite("opt", softmax, "--stage=html", "-o", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert (ran.code, ran.out) == (0, "")
    assert "<title>xlalite opt: softmax</title>" in page
    assert "<details><summary>asm " in page
    assert ">object<" not in page
    assert 'href="module_' not in page
    chosen = xlalite("opt", softmax, "--stage=html", "--passes=dce,fusion").out
    assert "<td>opt</td><td>fusion</td><td>changed</td>" in chosen
    assert "hlo-before-optimizations" in xlalite("opt", softmax, "--stage=html", "--platform=interpreter").out


def test_lists(xlalite: Callable[..., object]) -> None:
    passes = xlalite("opt", "--list-passes").out
    assert "fusion  " in passes
    assert "{max_members=128}" in passes
    assert "\ndot-operand-packing  " in passes
    assert "dot-operand-packing" not in xlalite("opt", "--list-passes", "--platform=interpreter").out
    stages = [line.split()[0] for line in xlalite("opt", "--list-stages").out.splitlines()]
    assert stages == [*STAGES, "stablehlo", "svg", "dot", "html"]


def test_bytecode_is_written_to_its_files(softmax: Path, tmp_path: Path, xlalite: Callable[..., object]) -> None:
    assert xlalite("opt", softmax, "--stage=stablehlo", "-o", tmp_path / "f.mlirbc").code == 0
    assert (tmp_path / "f.mlirbc").read_bytes().startswith(b"ML\xefR")
    assert "close" in xlalite("run", tmp_path / "f.mlirbc").out
    two = tmp_path / "two.hlo"
    two.write_text(f"{softmax.read_text()}\n// -----\n{softmax.read_text()}")
    ran = xlalite("opt", two, "--split-input-file", "--stage=stablehlo", "-o", tmp_path / "g.mlirbc")
    assert ran.code == 2
    assert "bytecode holds one module, the input has 2" in ran.err


def test_modules_are_written_as_protos(tmp_path: Path, softmax: Path, xlalite: Callable[..., object]) -> None:
    for words in ([], ["--passes=dce"]):
        assert xlalite("opt", softmax, *words, "-o", tmp_path / "f.pb").code == 0
        assert xlalite("run", tmp_path / "f.pb").code == 0
    assert xlalite("diff", softmax, tmp_path / "f.pb").code == 0
    (tmp_path / "two.hlo").write_text(f"{softmax.read_text()}\n// -----\n{softmax.read_text()}")
    ran = xlalite("opt", tmp_path / "two.hlo", "--split-input-file", "-o", tmp_path / "f.pb")
    assert ran.code == 2
    assert "a proto holds one module, the input has 2" in ran.err


@pytest.mark.parametrize(
    ("stage", "start"), [("llvm-before-optimizations", "define "), ("llvm", "define "), ("asm", "kernel.")]
)
def test_one_kernel_of_many(stage: str, start: str, tmp_path: Path, xlalite: Callable[..., object]) -> None:
    file = tmp_path / "f.hlo"
    file.write_text("""HloModule m
less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT }
ENTRY e { x = f32[64,64] parameter(0)
  y = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  z = f32[64,64] sort(x), dimensions={1}, to_apply=less
  ROOT t = (f32[64,64], f32[64,64]) tuple(y, z) }
""")
    ran = xlalite("opt", file, f"--stage={stage}", "--kernel=y")
    heading, code = ran.out.split("\n", 1)
    sign = "#" if stage == "asm" else ";"
    assert heading.startswith(f"{sign} %y = f32[64,64]{{1,0}} dot(%x, %x), ")
    assert code.startswith(start)
    assert "kernel.y" in ran.out
    assert "kernel.z" not in ran.out
    ran = xlalite("opt", file, f"--stage={stage}", "--kernel=yy")
    assert ran.code == 2
    assert "there is no kernel 'yy'" in ran.err
    assert "--stage=asm have kernels" in xlalite("opt", file, "--kernel=y").err
    twice = xlalite("opt", file, f"--stage={stage}", "--kernel=y", "--passes=cse,dce").out
    assert twice.startswith(f"{sign} %y = ")


def test_the_code_of_a_fusion_stands_behind_what_it_holds(softmax: Path, xlalite: Callable[..., object]) -> None:
    lines = xlalite("opt", softmax, "--stage=asm", "--kernel=q_fusion").out.splitlines()
    assert lines[0].startswith("# %q_fusion = f32[4,16]{1,0} fusion(%x), kind=kInput, calls=")
    assert any(line.startswith("#   %e = f32[4,16]{1,0} exponential(%") for line in lines)


def test_modules_are_shown_in_stablehlo(tmp_path: Path, xlalite: Callable[..., object]) -> None:
    file = tmp_path / "twice.hlo"
    file.write_text("HloModule m\nENTRY e { x = f32[4] parameter(0)\n y = f32[4] copy(x)\n ROOT a = f32[4] add(x, y) }")
    shown = xlalite("opt", file, "--stage=stablehlo").out
    assert "%0 = stablehlo.add %x, %x : tensor<4xf32>" in shown
    file.write_text(file.read_text().replace("add(x, y)", "subtract(x, y)"))
    assert "stablehlo.subtract" not in xlalite("opt", file, "--stage=stablehlo", "--passes=algsimp,dce").out


def test_passes_made_for_a_target_are_passes(tmp_path: Path, xlalite: Callable[..., object]) -> None:
    file = tmp_path / "narrow.hlo"
    file.write_text(
        "HloModule m\nENTRY e { x = s8[64,64] parameter(0)\n y = s8[64,64] parameter(1)\n a = s32[64,64] convert(x)\n"
        " b = s32[64,64] convert(y)\n"
        " ROOT d = s32[64,64] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"
    )
    assert "convert(" not in xlalite("opt", file, "--passes=dot-operand-types,dce").out
    assert "convert(" not in xlalite("opt", file).out
    for flag in ("--xla_disable_hlo_passes=dot-operand-types", "--xla_fuel=dot-operand-types=0"):
        assert "convert(" in xlalite("opt", file, flag).out, flag


def test_every_pass_of_a_pipeline_has_a_name() -> None:
    for optimize in (True, False):
        assert set(pass_names(cpu_pipeline(CompileOptions(optimize=optimize), TargetInfo.host()))) <= set(
            get_backend("cpu").passes
        )
