"""Errors of graphs and of running them, under TensorFlow's names and with its codes.

Each derives from `XlaliteError` and from the Python exception that a caller without our types would expect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from xlalite.hlo.errors import XlaliteError

if TYPE_CHECKING:
    from xlalite.framework.graph.operation import Operation


class OpError(XlaliteError):
    """Something went wrong in one operation.

    Attributes:
        node_def: Where the operation came from, or None.
        op: The operation, or None when none is to blame.
        message: What went wrong.
        error_code: The numeric status code of the class.
    """

    error_code: ClassVar[int] = 2

    def __init__(self, node_def: object | None, op: Operation | None, message: str) -> None:
        """Describes the failure; `op` adds its name and the user's line to the text."""
        self.node_def = node_def
        self.op = op
        self.message = message
        super().__init__(message if op is None else f"{message}\n  in {op.describe()}")


class CancelledError(OpError):
    """The step was cancelled."""

    error_code = 1


class UnknownError(OpError):
    """No better class applies."""

    error_code = 2


class InvalidArgumentError(OpError, ValueError):
    """An operation received something it cannot work with."""

    error_code = 3


class DeadlineExceededError(OpError, TimeoutError):
    """The step took longer than allowed."""

    error_code = 4


class NotFoundError(OpError, LookupError):
    """Something named does not exist."""

    error_code = 5


class AlreadyExistsError(OpError):
    """Something to be created exists already."""

    error_code = 6


class PermissionDeniedError(OpError, PermissionError):
    """The caller may not do this."""

    error_code = 7


class ResourceExhaustedError(OpError, MemoryError):
    """Memory or another limited resource ran out."""

    error_code = 8


class FailedPreconditionError(OpError):
    """The state does not allow the operation, as when reading a variable without a value."""

    error_code = 9


class AbortedError(OpError):
    """The operation was given up, usually because another one interfered."""

    error_code = 10


class OutOfRangeError(OpError):
    """The operation went past the end of its input."""

    error_code = 11


class UnimplementedError(OpError):
    """The operation is not supported here."""

    error_code = 12


class InternalError(OpError):
    """An invariant of xlalite itself does not hold."""

    error_code = 13


class UnavailableError(OpError):
    """A service is not there."""

    error_code = 14


class DataLossError(OpError):
    """Stored data is damaged."""

    error_code = 15


class GraphError(XlaliteError, ValueError):
    """A graph cannot be built or changed as asked, for reasons other than shapes."""


class MissingElementError(XlaliteError, KeyError):
    """A graph has no operation or tensor of that name."""

    def __str__(self) -> str:
        """The message as it is; KeyError itself would quote it."""
        return str(self.args[0])


class ElementTypeError(XlaliteError, TypeError):
    """An operation cannot work with elements of that type."""


class UninitializedError(FailedPreconditionError):
    """A variable was read before it had a value."""


class FinalizedGraphError(XlaliteError, RuntimeError):
    """A graph that was finalised cannot be changed."""
