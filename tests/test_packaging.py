"""The wheel: built, installed into a clean environment, and looked at from outside the work tree."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("hlo", "passes", "backends")
NOT_SOURCES = shutil.ignore_patterns("__pycache__", "*.egg-info")


@dataclass(frozen=True)
class Installed:
    """A wheel and a virtual environment that holds it."""

    wheel: Path
    venv: Path
    empty_dir: Path

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs the environment's Python outside the work tree, deaf to the caller's settings."""
        python = self.venv / ("Scripts" if os.name == "nt" else "bin") / "python"
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "XLALITE"))}
        return subprocess.run(
            [python, *arguments], cwd=self.empty_dir, env=environment, capture_output=True, text=True, check=False
        )


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    scratch = tmp_path_factory.mktemp("packaging")
    tree = scratch / "tree"
    _copy_sources_without_links(tree)
    _checked(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(scratch / "dist"), str(tree)],
        scratch,
    )
    (wheel,) = (scratch / "dist").glob("*.whl")
    environment = scratch / "venv"
    venv.create(environment, with_pip=False)
    purelib = Path(sysconfig.get_path("purelib", "venv", {"base": str(environment), "platbase": str(environment)}))
    with zipfile.ZipFile(wheel) as archive:  # a pure wheel installs by unpacking
        archive.extractall(purelib)
    # The dependencies come from the environment that runs the tests. A path added by a .pth file has its own .pth
    # files ignored, so an editable install of the work tree stays invisible.
    (purelib / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    empty_dir = scratch / "elsewhere"
    empty_dir.mkdir()
    return Installed(wheel, environment, empty_dir)


def _copy_sources_without_links(tree: Path) -> None:
    """Copies what the wheel is made of; the links stay behind because the package-dir mapping must be enough."""
    tree.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree / name)
    for room in ROOMS:
        shutil.copytree(ROOT / room, tree / room, ignore=NOT_SOURCES)
    shutil.copytree(ROOT / "xlalite", tree / "xlalite", ignore=shutil.ignore_patterns("__pycache__", *ROOMS))


def _checked(command: list[str], cwd: Path) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command} failed:\n{done.stdout}\n{done.stderr}"


def packages_of_the_tree() -> set[str]:
    """Every folder that holds Python files, by its installed name."""
    found = set()
    for top in (*ROOMS, "xlalite"):
        for path in (ROOT / top).rglob("*.py"):
            parts = path.relative_to(ROOT).parent.parts
            if parts[0] == "xlalite" and len(parts) > 1 and parts[1] in ROOMS:
                continue
            found.add(".".join(parts if parts[0] == "xlalite" else ("xlalite", *parts)))
    return found


def test_package_list_names_every_folder_with_sources() -> None:
    with open(ROOT / "pyproject.toml", "rb") as file:
        listed = tomllib.load(file)["tool"]["setuptools"]["packages"]
    assert listed == sorted(set(listed)), "keep the list sorted and without doubles"
    assert set(listed) == packages_of_the_tree()


@pytest.mark.parametrize("package", sorted(packages_of_the_tree()))
def test_package_has_an_init_file(package: str) -> None:
    parts = package.split(".")
    folder = ROOT.joinpath(*(parts[1:] if len(parts) > 1 and parts[1] in ROOMS else parts))
    assert (folder / "__init__.py").is_file()


@pytest.mark.parametrize("room", ROOMS)
def test_link_points_at_its_room(room: str) -> None:
    link = ROOT / "xlalite" / room
    assert link.is_symlink()
    assert os.readlink(link) == f"../{room}"


def test_wheel_has_one_top_level_name(installed: Installed) -> None:
    with zipfile.ZipFile(installed.wheel) as archive:
        tops = {name.split("/")[0] for name in archive.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"xlalite"}


def test_wheel_holds_every_source_and_data_file(installed: Installed) -> None:
    with zipfile.ZipFile(installed.wheel) as archive:
        shipped = {name for name in archive.namelist() if name.startswith("xlalite/")}
    expected = set()
    for top in (*ROOMS, "xlalite"):
        for path in (ROOT / top).rglob("*"):
            parts = path.relative_to(ROOT).parts
            linked = parts[0] == "xlalite" and parts[1] in ROOMS
            if path.is_file() and not linked and "__pycache__" not in parts:
                expected.add("/".join(parts if parts[0] == "xlalite" else ("xlalite", *parts)))
    assert shipped == expected


def test_every_module_imports_from_the_wheel(installed: Installed) -> None:
    code = (
        "import importlib, pkgutil, xlalite\n"
        "for module in pkgutil.walk_packages(xlalite.__path__, 'xlalite.'):\n"
        "    if module.name.endswith('__main__'):\n"
        "        continue\n"
        "    try:\n"
        "        importlib.import_module(module.name)\n"
        "    except ModuleNotFoundError as missing:  # a door to a package that the extra would bring\n"
        "        assert module.name.startswith('xlalite.interop.') and missing.name[:7] != 'xlalite', missing\n"
        "print(xlalite.__file__)\n"
    )
    done = installed.run("-W", "error", "-c", code)
    assert done.returncode == 0, done.stderr
    assert str(installed.venv) in done.stdout


@pytest.mark.parametrize("room", ROOMS)
def test_bare_room_is_not_installed(installed: Installed, room: str) -> None:
    done = installed.run("-c", f"import {room}")
    assert "ModuleNotFoundError" in done.stderr


@pytest.mark.parametrize("room", ROOMS)
def test_bare_import_in_the_work_tree_is_refused(room: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"import {room}"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert f"ImportError: import xlalite.{room} instead of {room}" in done.stderr


def test_import_loads_no_heavy_package(installed: Installed) -> None:
    code = (
        "import sys, xlalite\n"
        "dir(xlalite)\n"
        "heavy = {'llvmlite', 'networkx', 'numpy', 'ml_dtypes', 'jax'} & {name.split('.')[0] for name in sys.modules}\n"
        "print(sorted(heavy))"
    )
    done = installed.run("-c", code)
    assert done.stdout.strip() == "[]", done.stderr


NOT_FOR_ELEMENTS = """
backends.codegen.kernels: dot, fft, linear_algebra, select_and_scatter, sort, row, chain, scatter
backends.codegen.math: exponential, logarithm, power, trigonometric
backends.codegen.complex_math: algebraic, exponential, inverse, logarithm
backends.codegen.elements: complex_arithmetic, control, convolution, dot, gathering, random, reduction, slicing
backends.codegen.arrays: narrow_floats
passes.normalization: batch_norm_expander, defusion, padded_forms, rng_expander, run_time_size_calls, scan_expander
passes.preparation: complex_dot_expander, convolution_canonicalizer, logical_dot_expander, reduction_splitter
passes.simplify: conditional_simplifier, constant_folding, loop_invariant_code_motion, reshape_mover, while_simplifier
passes.simplify: choice, dot, indexing, reduction, shaping, slicing
passes.analysis: trip_count
passes: registry, dump
backends.cpu: device_run
backends.cpu.emission: collective_code, meeting, transfer_code
backends.cpu.native: letters, rendezvous
hlo.building: builder
hlo.evaluation: evaluator, spmd
hlo.ops: convolution, custom, gathering, random, slicing, sorting, windows
hlo.ops.evaluation: gathering_evaluation, lapack, reduction_evaluation, sorting_evaluation, window_evaluation
hlo.numerics: elimination, integers, spectra
hlo.text: printer
"""


def test_a_compilation_loads_only_what_its_operations_need(installed: Installed) -> None:
    code = (
        "import importlib, os, sys\n"
        "os.environ['XLALITE_CACHE'] = '0'\n"
        "import xlalite as xl\n"
        "xl.compile(xl.hlo.parse('HloModule m\\nENTRY e { x = f32[4] parameter(0)\\n ROOT r = f32[4] negate(x) }'))\n"
        "late = []\n"
        f"for line in {NOT_FOR_ELEMENTS!r}.strip().splitlines():\n"
        "    room, _, names = line.partition(': ')\n"
        "    late += [f'xlalite.{room}.{name}' for name in names.split(', ')]\n"
        "loaded = [name for name in late if name in sys.modules]\n"
        "assert not loaded, loaded\n"
        "for name in late:\n"
        "    importlib.import_module(name)  # which there is\n"
    )
    done = installed.run("-c", code)
    assert done.returncode == 0, done.stderr
