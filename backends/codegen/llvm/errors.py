"""The error of the text builder: a bug in an emitter, found before LLVM sees the text."""

from xlalite.hlo.errors import CodegenError


class LLVMBuildError(CodegenError, TypeError):
    """An emitter asked for an instruction that LLVM would refuse (wrong types, instruction after a terminator, ...)."""
