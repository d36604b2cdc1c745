import pytest

from xlalite.framework.graph.tensor_shape import Dimension, TensorShape
from xlalite.hlo.errors import ShapeError


def test_unknown_sizes_and_ranks_print_as_tensorflow_prints_them() -> None:
    assert str(TensorShape([2, None])) == "(2, ?)"
    assert str(TensorShape([3])) == "(3,)"
    assert str(TensorShape(None)) == "<unknown>"
    assert repr(TensorShape([2, None])) == "TensorShape([2, None])"


def test_merge_takes_what_either_knows() -> None:
    assert TensorShape([2, None]).merge_with([None, 3]) == [2, 3]
    assert TensorShape(None).merge_with([None]) == [None]


def test_merge_of_contradicting_shapes_names_both() -> None:
    with pytest.raises(ShapeError, match=r"shapes \(2,\) and \(3,\) are not compatible: sizes 2 and 3 differ"):
        TensorShape([2]).merge_with([3])
    with pytest.raises(ShapeError, match="different ranks"):
        TensorShape([2]).merge_with([2, 2])


def test_single_dimensions_behave_as_in_tensorflow_1() -> None:
    shape = TensorShape([2, None])
    assert shape[0].value == 2
    assert shape[1].value is None
    assert int(shape[0]) * 3 == 6
    assert (shape[0] + shape[1]).value is None
    assert shape[1:] == [None]
    assert shape.as_list() == [2, None]
    with pytest.raises(TypeError, match="unknown"):
        int(Dimension(None))


def test_negative_sizes_and_lengths_of_unknown_ranks_are_errors() -> None:
    with pytest.raises(ShapeError, match="-1"):
        TensorShape([-1])
    with pytest.raises(ShapeError, match="rank"):
        len(TensorShape(None))
    with pytest.raises(TypeError, match="integer"):
        TensorShape([2.5])


def test_element_counts_need_all_sizes() -> None:
    assert TensorShape([2, 0, 3]).num_elements() == 0
    assert TensorShape([]).num_elements() == 1
    assert TensorShape([2, None]).num_elements() is None
    assert TensorShape([4]).is_fully_defined()
    assert not TensorShape(None).is_fully_defined()
