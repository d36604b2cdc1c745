"""llvmlite's own target machine for a target, to look at what LLVM makes of a module."""

import llvmlite.binding as llvm

from xlalite.backends.codegen.llvm import TargetInfo


def machine_for(target: TargetInfo) -> llvm.TargetMachine:
    """A machine like those of `TargetInfo.create_machine`."""
    found = llvm.Target.from_triple(target.triple)
    return found.create_target_machine(target.cpu, target.feature_string, reloc="pic", codemodel="small")
