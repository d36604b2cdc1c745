# Written by `python -m pytest tests/test_public_names.py --bless` from the tables of names.

from xlalite.framework.graph.errors import (
    AbortedError as AbortedError, AlreadyExistsError as AlreadyExistsError, CancelledError as CancelledError,
    DataLossError as DataLossError, DeadlineExceededError as DeadlineExceededError,
    ElementTypeError as ElementTypeError, FailedPreconditionError as FailedPreconditionError,
    FinalizedGraphError as FinalizedGraphError, GraphError as GraphError, InternalError as InternalError,
    InvalidArgumentError as InvalidArgumentError, MissingElementError as MissingElementError,
    NotFoundError as NotFoundError, OpError as OpError, OutOfRangeError as OutOfRangeError,
    PermissionDeniedError as PermissionDeniedError, ResourceExhaustedError as ResourceExhaustedError,
    UnavailableError as UnavailableError, UnimplementedError as UnimplementedError,
    UninitializedError as UninitializedError, UnknownError as UnknownError
)

