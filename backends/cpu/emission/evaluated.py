"""Operations without a kernel: compiled code calls the evaluator for them, and a record says so.

This keeps every program runnable; it is slow, so each such call is a decision to look at. Code names the call by the
fingerprint of what it computes.
"""

from __future__ import annotations

from xlalite.backends.codegen.elements.rules import ELEMENT_RULES, SEVERAL_ELEMENTS
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.fingerprint import fingerprint
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.ops import OPS
from xlalite.hlo.ops.structural import ParameterAttrs
from xlalite.hlo.types.decision import Decision
from xlalite.hlo.types.shape import Shape
from xlalite.passes.fusion.kernel_shape import whole_array_kind


def why_evaluated(instruction: HloInstruction) -> str | None:
    """Why an instruction is evaluated rather than compiled; None if kernels may be asked."""
    if instruction.opcode == "fusion":
        body = instruction.called_computations[0]
        missing = _without_rule(body, body.root if whole_array_kind(body.root) else None)
        return f"no kernel computes {', '.join(missing)} inside a fusion" if missing else None
    if instruction.opcode == "custom-call" and whole_array_kind(instruction) is None:
        from xlalite.hlo.ops.custom import EVALUATE, REFUSE

        target = instruction.attrs.custom_call_target
        outlined = {EVALUATE: "sizes known at run time", REFUSE: "the program has failed, and the evaluator says why"}
        return outlined.get(target, f"it is a custom call of {target}")
    has_rule = instruction.opcode in ELEMENT_RULES and (
        instruction.opcode in SEVERAL_ELEMENTS or not instruction.shape.is_tuple
    )
    if not has_rule and whole_array_kind(instruction) is None:
        return f"no kernel computes {instruction.opcode}"
    for function in instruction.called_computations:
        missing = _without_rule(function)
        if missing:
            return f"no kernel computes {', '.join(missing)} for each element"
    return None


def evaluated_decision(instruction: HloInstruction, reason: str, size_bytes: int) -> Decision:
    """The record of a call of the evaluator; one that only says why a program has failed computes nothing."""
    subject, work = (instruction.name,), {"bytes": size_bytes}
    if instruction.opcode == "custom-call":
        from xlalite.hlo.ops.custom import REFUSE

        if instruction.attrs.custom_call_target == REFUSE:
            return Decision("kernel planner", subject, "refused", reason, work)
    return Decision("kernel planner", subject, "evaluated", reason, {"opcode": instruction.opcode, **work})


def _without_rule(computation: HloComputation, has_kernel: HloInstruction | None = None) -> list[str]:
    """Opcodes in a computation, and in what it calls, that no kernel computes; one instruction has its own kernel."""
    missing: set[str] = set()
    for instruction in computation.instructions:
        if instruction is not has_kernel and not _has_rule(instruction):
            missing.add(instruction.opcode)
        for callee in instruction.called_computations:
            missing.update(_without_rule(callee))
    # Tuples are there for the sake of what makes and reads them.
    return sorted(missing - {"tuple", "get-tuple-element"} or missing)


def _is_of_scalars(shape: Shape) -> bool:
    """Whether a value is a scalar, or a tuple of such."""
    return all(leaf.is_scalar for _, leaf in shape.leaves())


def _has_rule(instruction: HloInstruction) -> bool:
    if instruction.opcode == "get-tuple-element":
        whole = instruction.operand(0)
        return whole.opcode in SEVERAL_ELEMENTS or _is_of_scalars(whole.shape)
    if instruction.opcode == "tuple":
        return instruction.is_root or _is_of_scalars(instruction.shape)
    if instruction.opcode in ("while", "conditional"):
        return _is_of_scalars(instruction.shape)
    return instruction.opcode in ELEMENT_RULES or instruction.opcode == "parameter"


def evaluated_module(instruction: HloInstruction) -> HloModule:
    """A module that computes one instruction from parameters, one for each operand."""
    module = HloModule(instruction.name)
    if instruction.module is not None:
        config = instruction.module.config
        module.update_config(replica_count=config.replica_count, num_partitions=config.num_partitions)
    copies: dict[HloComputation, HloComputation] = {}

    def called(computation: HloComputation) -> HloComputation:
        if computation not in copies:
            copies[computation] = module.add(computation.clone(called=called))
        return copies[computation]

    entry = HloComputation("entry")
    parameters = [
        entry.add(HloInstruction(OPS["parameter"], o.shape, attrs=ParameterAttrs(n), name=f"p{n}"))
        for n, o in enumerate(instruction.operands)
    ]
    callees = [called(computation) for computation in instruction.called_computations]
    entry.set_root(entry.add(instruction.clone(parameters, called_computations=callees)))
    module.add(entry, entry=True)
    return module


def evaluator_symbol(module: HloModule) -> str:
    """The name under which code calls it."""
    return f"xlalite_evaluate_{fingerprint(module)}"
