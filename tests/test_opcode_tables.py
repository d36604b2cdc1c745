"""Tables of opcodes hold opcodes only: a key that is none would never be asked for, and nobody would notice."""

import importlib
import pkgutil
from collections.abc import Iterator, Mapping, Set

import pytest

import xlalite
from xlalite.backends.codegen.elements import rules as element_rules
from xlalite.hlo.late import imported
from xlalite.hlo.ops import OPS
from xlalite.passes.simplify import algebraic_simplifier

# Rooms whose names are other people's, or functions' that are no operations.
ELSEWHERE = (
    *("xlalite.hlo.stablehlo.", "xlalite.backends.codegen.math", "xlalite.examples", "xlalite.__main__"),
    *("xlalite.interop.", "xlalite.cli."),
)


def tables() -> Iterator[tuple[str, frozenset[str]]]:
    """Names and keys of module-level tables and sets that are about opcodes: half of the keys are, at least."""
    for info in pkgutil.walk_packages(xlalite.__path__, "xlalite."):
        if info.name.startswith(ELSEWHERE):
            continue
        for name, value in vars(importlib.import_module(info.name)).items():
            if not isinstance(value, (Mapping, Set)) or not all(isinstance(key, str) for key in value):
                continue
            keys = frozenset(value)
            if keys and 2 * len(keys & OPS.keys()) >= len(keys) and not name.startswith("MATH_"):
                yield f"{info.name}.{name}", keys


TABLES = dict(tables())


def test_the_tables_are_found() -> None:
    assert "xlalite.backends.codegen.elements.rules.ELEMENT_RULES" in TABLES
    assert len(TABLES) > 20


@pytest.mark.parametrize("table", TABLES)
def test_every_key_is_an_opcode(table: str) -> None:
    assert TABLES[table] <= OPS.keys(), f"{table} holds {sorted(TABLES[table] - OPS.keys())}, which are no opcodes"


@pytest.mark.parametrize("family", element_rules.FAMILIES)
def test_families_of_element_rules_are_what_their_files_hold(family: str) -> None:
    held = imported(f"xlalite.backends.codegen.elements.{family}:ELEMENT_RULES")
    assert set(element_rules.FAMILIES[family].split()) == set(held)


@pytest.mark.parametrize("family", algebraic_simplifier.FAMILIES)
def test_families_of_rewrite_rules_look_at_the_operations_of_their_files(family: str) -> None:
    rules = imported(f"xlalite.passes.simplify.{family}:RULES")
    assert set(algebraic_simplifier.FAMILIES[family].split()) == {rule.opcode for rule in rules}
