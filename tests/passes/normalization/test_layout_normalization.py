from xlalite.hlo.ops.evaluation.scalar_function import is_vectorizable
from xlalite.hlo.text import parse
from xlalite.passes.normalization.layout_normalization import LayoutNormalization


def test_bitcasts_of_scalars_stay_scalars(transform) -> None:
    """Comparators as XLA writes them out have them; whole arrays are sorted only by scalar operations."""
    text = """HloModule m

less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  x = s32[] bitcast(a)
  y = s32[] bitcast(b)
  ROOT r = pred[] compare(x, y), direction=LT
}

ENTRY e {
  x = f32[20] parameter(0)
  ROOT s = f32[20] sort(x), dimensions={0}, to_apply=less
}
"""
    for module in (parse(text), transform(LayoutNormalization(), text).module):
        (comparator,) = module.entry_computation.root.called_computations
        assert is_vectorizable(comparator)
        assert len(comparator) == 5
