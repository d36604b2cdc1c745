"""Tiles that several products of a program compute with: they know less of each, and LLVM makes fewer of them."""

from __future__ import annotations

from dataclasses import replace

from xlalite.backends.codegen.kernels.dot.layout import DotLayout
from xlalite.backends.codegen.kernels.dot.outer_tile import OuterTile
from xlalite.backends.codegen.kernels.dot.plan import DotPlan
from xlalite.backends.codegen.kernels.dot.tile_choice import first_tile
from xlalite.backends.codegen.llvm import ModuleBuilder

_SHARED_TERMS = 64
"""Terms from which on a tile takes so long that it may ask what it could know."""


def announce_tiles(module: ModuleBuilder, plan: DotPlan, layout: DotLayout) -> None:
    """Says which tile a product needs, before any is written."""
    tile = _tile(plan, layout)
    if tile is not None:
        key = plan.numbers.kind, tile.most_general
        known = module.announced.setdefault(key, tile)
        assert isinstance(known, OuterTile), "tiles are known by tiles"
        module.announced[key] = known.as_general_as(tile)


def with_shared_tiles(module: ModuleBuilder, plan: DotPlan, layout: DotLayout) -> DotLayout:
    """The layout with the tile that all products share which need one like it, if they were announced."""
    tile = _tile(plan, layout)
    shared = None if tile is None else module.announced.get((plan.numbers.kind, tile.most_general))
    return replace(layout, shared_tile=shared) if isinstance(shared, OuterTile) and shared != tile else layout


def _tile(plan: DotPlan, layout: DotLayout) -> OuterTile | None:
    tile = first_tile(plan, layout)
    return tile if isinstance(tile, OuterTile) and plan.unit_depth >= _SHARED_TERMS else None
