"""sqrt and rsqrt from the machine's correctly rounded square root."""

from xlalite.backends.cpu.llvm import FunctionBuilder, Value, constant


def emit_sqrt(fb: FunctionBuilder, x: Value) -> Value:
    """The square root, correctly rounded."""
    return fb.sqrt(x)


def emit_rsqrt(fb: FunctionBuilder, x: Value) -> Value:
    """1 / sqrt(x), with infinity of the sign of a zero."""
    return fb.fdiv(constant(x.type, 1.0), fb.sqrt(x))
