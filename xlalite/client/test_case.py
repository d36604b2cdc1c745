"""`tf.test`: `unittest` with sessions, and with assertions about arrays."""

from __future__ import annotations

import random
import tempfile
import unittest
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

from xlalite.client.session import Session
from xlalite.framework.graph.default_graph import get_default_graph, reset_default_graph
from xlalite.framework.graph.default_session import get_default_session
from xlalite.framework.graph.errors import OpError
from xlalite.framework.random_seed import set_random_seed
from xlalite.hlo.errors import XlaliteError

main = unittest.main


class TestCase(unittest.TestCase):
    """A test with a graph of its own; random numbers are the same in every run."""

    __test__ = False
    _temporary: tempfile.TemporaryDirectory[str] | None = None
    _cached: Session | None = None

    def __init_subclass__(cls, **given: Any) -> None:
        """Subclasses are tests, this class is none."""
        super().__init_subclass__(**given)
        cls.__test__ = True

    def setUp(self) -> None:
        """Starts with an empty graph."""
        super().setUp()
        self._cached = None
        reset_default_graph()
        random.seed(87654321)
        np.random.seed(87654321)
        set_random_seed(87654321)

    @contextmanager
    def session(
        self, graph: Any = None, config: Any = None, use_gpu: bool = False, force_gpu: bool = False
    ) -> Iterator[Session]:
        """A session that is the default one in a `with` block."""
        with Session(graph=graph, config=config) as session:
            yield session

    @contextmanager
    def cached_session(
        self, graph: Any = None, config: Any = None, use_gpu: bool = False, force_gpu: bool = False
    ) -> Iterator[Session]:
        """As `session`; within a test it is the same each time."""
        if self._cached is None:
            self._cached = Session(graph=graph, config=config)
            self.addCleanup(self._cached.close)
        with self._cached.graph.as_default(), self._cached.as_default():
            yield self._cached

    def test_session(
        self, graph: Any = None, config: Any = None, use_gpu: bool = False, force_gpu: bool = False
    ) -> AbstractContextManager[Session]:
        """The same as `cached_session`; one of its own for a given graph or configuration."""
        if self._testMethodName == "test_session":
            self.skipTest("not a test, but called like one")
        make = self.cached_session if graph is None and config is None else self.session
        return make(graph, config, use_gpu, force_gpu)

    test_session.__test__ = False  # type: ignore[attr-defined]

    def evaluate(self, tensors: Any) -> Any:
        """The values of tensors in the default session, or in one for this only."""
        session = get_default_session()
        if session is not None:
            return session.run(tensors)
        with Session(graph=get_default_graph()) as own:
            return own.run(tensors)

    def get_temp_dir(self) -> str:
        """A folder that is removed after the test."""
        if self._temporary is None:
            self._temporary = tempfile.TemporaryDirectory()
            self.addCleanup(self._temporary.cleanup)
        return self._temporary.name

    def assertAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:
        """Shapes and values are equal; NaNs are equal to NaNs."""
        np.testing.assert_array_equal(self._array(a), self._array(b), msg or "", strict=False)
        self.assertEqual(self._array(a).shape, self._array(b).shape, msg)

    def assertAllClose(self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None) -> None:
        """Values are close, in arrays or in mappings and sequences of them."""
        if isinstance(a, Mapping):
            self.assertEqual(set(a), set(b), msg)
            for key in a:
                self.assertAllClose(a[key], b[key], rtol, atol, msg)
        elif isinstance(a, list | tuple) and any(isinstance(each, Mapping | Sequence | np.ndarray) for each in a):
            self.assertEqual(len(a), len(b), msg)
            for one, other in zip(a, b, strict=True):
                self.assertAllClose(one, other, rtol, atol, msg)
        else:
            one, other = self._array(a), self._array(b)
            self.assertEqual(one.shape, other.shape, msg)
            np.testing.assert_allclose(one, other, rtol, atol, err_msg=msg or "")

    def assertAllCloseAccordingToType(
        self,
        a: Any,
        b: Any,
        rtol: float = 1e-6,
        atol: float = 1e-6,
        float_rtol: float = 1e-6,
        float_atol: float = 1e-6,
        half_rtol: float = 1e-3,
        half_atol: float = 1e-3,
        bfloat16_rtol: float = 1e-2,
        bfloat16_atol: float = 1e-2,
        msg: str | None = None,
    ) -> None:
        """As `assertAllClose`, with the limits of the narrower element type."""
        names = {self._array(a).dtype.name, self._array(b).dtype.name}
        for dtype, wider in (
            ("float32", (float_rtol, float_atol)),
            ("complex64", (float_rtol, float_atol)),
            ("float16", (half_rtol, half_atol)),
            ("bfloat16", (bfloat16_rtol, bfloat16_atol)),
        ):
            if dtype in names:
                rtol, atol = max(rtol, wider[0]), max(atol, wider[1])
        self.assertAllClose(a, b, rtol, atol, msg)

    def assertShapeEqual(self, np_array: Any, tf_tensor: Any, msg: str | None = None) -> None:
        """A tensor has the shape of an array."""
        self.assertEqual(tuple(np.shape(np_array)), tuple(tf_tensor.get_shape().as_list()), msg)

    def assertNear(self, f1: float, f2: float, err: float, msg: str | None = None) -> None:
        """Two numbers differ by at most `err`."""
        self.assertTrue(f1 == f2 or abs(f1 - f2) <= err, msg or f"{f1!r} and {f2!r} differ by more than {err!r}")

    def assertArrayNear(self, farray1: Any, farray2: Any, err: float, msg: str | None = None) -> None:
        """The numbers of two sequences differ by at most `err`."""
        self.assertEqual(len(farray1), len(farray2), msg)
        for one, other in zip(farray1, farray2, strict=True):
            self.assertNear(float(one), float(other), err, msg)

    def assertRaisesOpError(self, expected_err_re_or_predicate: Any) -> AbstractContextManager[None]:
        """An operation fails in the block, with such a text."""
        return self.assertRaisesWithPredicateMatch(OpError, expected_err_re_or_predicate)

    @contextmanager
    def assertRaisesWithPredicateMatch(
        self, exception_type: type[Exception], expected_err_re_or_predicate: str | Callable[[Exception], bool]
    ) -> Iterator[None]:
        """Such an error is raised in the block, with such a text or one that a function accepts."""
        accepted = (exception_type, XlaliteError) if exception_type is OpError else exception_type
        with self.assertRaises(accepted) as raised:
            yield
        expected = expected_err_re_or_predicate
        if callable(expected):
            self.assertTrue(expected(raised.exception), f"not the expected error: {raised.exception!r}")
        else:
            self.assertRegex(str(raised.exception), expected)

    def _array(self, value: Any) -> np.ndarray[Any, Any]:
        return np.asarray(self.evaluate(value) if hasattr(value, "_as_graph_element") else value)


def is_gpu_available(cuda_only: bool = False, min_cuda_compute_capability: Any = None) -> bool:
    """False: operations run on the processor."""
    return False


def is_built_with_cuda() -> bool:
    """False: operations run on the processor."""
    return False


def gpu_device_name() -> str:
    """The empty string: there is none."""
    return ""


def get_temp_dir() -> str:
    """A new folder."""
    return tempfile.mkdtemp()
