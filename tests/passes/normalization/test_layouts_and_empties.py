from xlalite.hlo.ops.evaluation.scalar_function import is_vectorizable
from xlalite.hlo.text import parse
from xlalite.passes.normalization.layout_normalization import LayoutNormalization
from xlalite.passes.normalization.unschedule import Unschedule
from xlalite.passes.normalization.zero_sized import ZeroSizedElimination

LAYOUTS = LayoutNormalization()


def test_bitcast_of_another_layout_becomes_a_transpose(transform) -> None:
    result = transform(
        LAYOUTS,
        """HloModule m

ENTRY e {
  x = f32[2,3]{1,0} parameter(0)
  ROOT r = f32[3,2]{0,1} bitcast(x)
}
""",
    )
    assert result.opcodes == ["transpose"]


def test_chained_bitcasts_keep_their_meaning(transform) -> None:
    result = transform(
        LAYOUTS,
        """HloModule m

ENTRY e {
  x = f32[2,3,4]{0,2,1} parameter(0)
  a = f32[4,6]{0,1} bitcast(x)
  b = f32[4,6]{1,0} copy(a)
  c = f32[8,3]{0,1} bitcast(b)
  ROOT r = f32[24]{0} bitcast(c)
}
""",
    )
    assert "bitcast" not in result.opcodes
    assert "copy" not in result.opcodes
    assert "{0,1}" not in str(result.module)


def test_bitcast_to_another_type_reinterprets_the_bits(transform) -> None:
    result = transform(
        LAYOUTS,
        """HloModule m

ENTRY e {
  x = f32[2,4]{0,1} parameter(0)
  a = u16[4,4]{1,0} bitcast(x)
  ROOT r = f64[4]{0} bitcast(a)
}
""",
    )
    assert "bitcast-convert" in result.opcodes
    assert "bitcast" not in result.opcodes


def test_bitcast_of_pred_stays_row_major(transform) -> None:
    result = transform(
        LAYOUTS,
        """HloModule m

ENTRY e {
  x = pred[2,4]{0,1} parameter(0)
  ROOT r = u8[8]{0} bitcast(x)
}
""",
    )
    assert result.opcodes == ["transpose", "bitcast"]


def test_default_layouts_are_no_change(transform) -> None:
    text = """HloModule m, entry_computation_layout={(f32[2,3]{1,0})->f32[2,3]{1,0}}

ENTRY e {
  x = f32[2,3]{1,0} parameter(0)
  ROOT r = f32[2,3]{1,0} negate(x)
}
"""
    assert not transform(LAYOUTS, text).changed


def test_entry_layout_is_dropped(transform) -> None:
    text = """HloModule m, entry_computation_layout={(f32[2,3]{0,1})->f32[2,3]{0,1}}

ENTRY e {
  x = f32[2,3] parameter(0)
  ROOT r = f32[2,3] negate(x)
}
"""
    result = transform(LAYOUTS, text)
    assert result.changed
    assert result.module.config.entry_layout is None


def test_copy_with_control_dependencies_stays(transform) -> None:
    text = """HloModule m

ENTRY e {
  x = f32[2,3] parameter(0)
  a = f32[2,3] tanh(x)
  b = f32[2,3] copy(x), control-predecessors={a}
  ROOT r = (f32[2,3], f32[2,3]) tuple(a, b)
}
"""
    assert not transform(LAYOUTS, text).changed


def test_arrays_without_elements_become_constants(transform) -> None:
    result = transform(
        ZeroSizedElimination(),
        """HloModule m

ENTRY e {
  x = f32[0,3] parameter(0)
  y = f32[2,3] parameter(1)
  a = f32[0,3] tanh(x)
  ROOT r = f32[2,3] concatenate(a, y), dimensions={0}
}
""",
    )
    assert result.opcodes == ["constant", "concatenate"]


def test_arrays_with_elements_stay(transform) -> None:
    text = """HloModule m

ENTRY e {
  x = f32[1,3] parameter(0)
  ROOT a = f32[1,3] tanh(x)
}
"""
    assert not transform(ZeroSizedElimination(), text).changed


def test_schedule_is_forgotten(transform) -> None:
    text = """HloModule m, is_scheduled=true

ENTRY e {
  x = f32[3] parameter(0)
  ROOT a = f32[3] tanh(x)
}
"""
    assert not transform(Unschedule(), text).module.config.is_scheduled
    assert not transform(Unschedule(), text.replace(", is_scheduled=true", "")).changed


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
