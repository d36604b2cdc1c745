"""Errors of sessions. Each derives from `XlaliteError` and from what TensorFlow raises in its place."""

from __future__ import annotations

from xlalite.hlo.errors import XlaliteError


class SessionError(XlaliteError, RuntimeError):
    """A session is used in a state that does not allow it: closed, or with an empty graph."""


class FetchError(XlaliteError, ValueError):
    """Something to fetch is not in the session's graph."""


class FetchTypeError(XlaliteError, TypeError):
    """Something to fetch is of a type that stands for nothing in a graph."""


class FeedError(XlaliteError, ValueError):
    """A fed value does not fit its tensor, or the tensor cannot be fed."""


class FeedTypeError(XlaliteError, TypeError):
    """A key or a value of a feed is of a type that cannot be used."""
