"""Hyperparameters keep their types, whatever sets them."""

import pytest

import xlalite as tf


def made() -> tf.contrib.training.HParams:
    return tf.contrib.training.HParams(rate=0.1, layers=2, name="a", widths=(3, 4), is_big=False)


def test_values_are_attributes_and_a_dictionary() -> None:
    params = made()
    assert (params.rate, params.layers, params.widths, "rate" in params, params.get("depth", 7)) == (
        0.1,
        2,
        [3, 4],
        True,
        7,
    )
    params.add_hparam("depth", 5)
    assert params.values() == {"rate": 0.1, "layers": 2, "name": "a", "widths": [3, 4], "is_big": False, "depth": 5}
    params.del_hparam("depth")
    assert "depth" not in params


def test_text_is_read_in_the_type_of_each() -> None:
    params = made().parse("rate=1,layers=3,name=b c,widths=[5, 6,7],is_big=true")
    assert params.values() == {"rate": 1.0, "layers": 3, "name": "b c", "widths": [5, 6, 7], "is_big": True}
    assert isinstance(params.rate, float)
    assert made().parse("widths[1]=9").widths == [3, 9]
    assert made().parse_json(params.to_json()).values() == params.values()
    assert made().override_from_dict({"layers": 8}).layers == 8


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("layer=3", KeyError, "no hyperparameter 'layer'.*did you mean 'layers'"),
        ("layers=many", ValueError, "'layers': expected int, found 'many'"),
        ("is_big=perhaps", ValueError, "expected true or false, found 'perhaps'"),
        ("layers", ValueError, "cannot read 'layers'"),
        ("widths[2]=1", ValueError, "'widths' has no element 2"),
    ],
)
def test_wrong_text_is_an_error_that_says_what_was_expected(text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        made().parse(text)


def test_wrong_values_are_errors() -> None:
    with pytest.raises(ValueError, match=r"expected int, found 2\.5"):
        made().set_hparam("layers", 2.5)
    with pytest.raises(ValueError, match="is there already"):
        made().add_hparam("rate", 1)
