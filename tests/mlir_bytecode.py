"""StableHLO as MLIR writes and reads it in binary form, for tests where jax is installed."""

from __future__ import annotations

import io
from typing import Any


def bytecode_of(module: Any) -> bytes:
    """A module as it is."""
    stream = io.BytesIO()
    module.operation.write_bytecode(stream)
    return stream.getvalue()


def artifact_of(module: Any, version: str = "", *, shardings: bool = False) -> bytes:
    """The portable artifact of a module, for the newest version of StableHLO or another."""
    from jaxlib import _jax
    from jaxlib.mlir.dialects import stablehlo

    wanted = version or stablehlo.get_current_version()
    artifact: bytes = _jax.mlir.serialize_portable_artifact(module, wanted, shardings)
    return artifact


def unpacked(artifact: bytes) -> str:
    """What MLIR reads from an artifact, in generic spelling."""
    from jax._src.interpreters.mlir import make_ir_context
    from jaxlib import _jax

    with make_ir_context():
        module = _jax.mlir.deserialize_portable_artifact(artifact)
        return str(module.operation.get_asm(print_generic_op_form=True))
