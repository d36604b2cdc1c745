"""Switches between TensorFlow's behaviours, of which xlalite has one: graphs and sessions, resource variables."""

from __future__ import annotations


def disable_v2_behavior() -> None:
    """Does nothing: graphs and sessions are the only behaviour."""


def disable_eager_execution() -> None:
    """Does nothing: operations are always added to a graph."""


def disable_v2_tensorshape() -> None:
    """Does nothing: sizes in shapes are TensorFlow 1's."""


def enable_resource_variables() -> None:
    """Does nothing: every variable is a resource."""


def enable_control_flow_v2() -> None:
    """Does nothing: branches and loops are always functional."""


def executing_eagerly() -> bool:
    """False: operations are always added to a graph."""
    return False
