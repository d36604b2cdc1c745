"""Running a pass under every check: the fixture `transform` of `conftest.py`."""

from dataclasses import dataclass, replace

from random_modules.values import make_random_arguments, require_same_bits

from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.ir.fingerprint import module_fingerprint
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.text import parse
from xlalite.hlo.verification.verifier import verify
from xlalite.passes.core.base import Fuel, HloPass

SEEDS = (7, 8, 9)
UNLIMITED = 1 << 30


@dataclass(frozen=True)
class Transformed:
    """A module after a pass, and whether the pass changed it."""

    module: HloModule
    changed: bool

    @property
    def opcodes(self) -> list[str]:
        """Opcodes of the entry computation without parameters, operands first."""
        entry = self.module.entry_computation
        return [i.opcode for i in entry.post_order() if i.opcode != "parameter"]

    @property
    def root(self) -> str:
        """The entry's root as `opcode(operands by name)`."""
        root = self.module.entry_computation.root
        return f"{root.opcode}({', '.join(o.name if o.opcode == 'parameter' else o.opcode for o in root.operands)})"


def transform(
    hlo_pass: HloPass, program: str | HloModule, *, idempotent: bool = True, evaluated: bool = True
) -> Transformed:
    """Runs a pass with every check: verifier, truthful answer and count, the same bits, nothing for a second run."""
    module = parse(program) if isinstance(program, str) else program
    verify(module)
    arguments = [make_random_arguments(module, seed) for seed in SEEDS] if evaluated else []
    expected = [evaluate(module, *values) for values in arguments]
    before = module_fingerprint(module)
    text = str(module)
    fuel, given = Fuel(UNLIMITED), module.clone()
    changed = replace(hlo_pass, fuel=fuel).run(module)
    verify(module)
    assert changed == (module_fingerprint(module) != before), f"{hlo_pass.name} said {changed}\n{text}\n{module}"
    if hlo_pass.counts_changes:
        require_one_change_for_each_unit(hlo_pass, given, module, fuel.taken)
    for values, wanted in zip(arguments, expected, strict=True):
        require_same_bits(wanted, evaluate(module, *values), f"{text}\n{module}")
    if idempotent:
        assert not hlo_pass.run(module), f"a second run of {hlo_pass.name} changes\n{module}"
    return Transformed(module, changed)


def require_one_change_for_each_unit(hlo_pass: HloPass, given: HloModule, done: HloModule, taken: int) -> None:
    """Without the last unit of fuel the pass does not come as far; without any it changes nothing."""
    full = module_fingerprint(done)
    assert (taken > 0) == (full != module_fingerprint(given)), f"{hlo_pass.name} took {taken} units\n{given}\n{done}"
    for allowed in {0, taken - 1} if taken else ():
        fuel, module = Fuel(allowed), given.clone()
        changed = replace(hlo_pass, fuel=fuel).run(module)
        verify(module)
        assert fuel.taken == allowed, f"{hlo_pass.name} took {fuel.taken} of {allowed} units\n{given}"
        assert changed == (allowed > 0), f"{hlo_pass.name} said {changed} with {allowed} units\n{given}\n{module}"
        assert module_fingerprint(module) != full, (
            f"the last of {taken} units of {hlo_pass.name} changed nothing\n{given}"
        )
