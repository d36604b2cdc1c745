"""The commands read protocol buffers where they read text, and name what they cannot read."""

import numpy as np
import pytest

from xlalite.cli.reading import InputError, read_module
from xlalite.hlo import Builder, DType, Shape
from xlalite.hlo.proto.serialization import write_hlo_proto, write_pbtxt, write_proto


def test_protos_are_read_whatever_their_names(tmp_path):
    builder = Builder("large")
    x = builder.parameter(Shape.array(DType.F32, (50,)), "x")
    module = builder.build_module(x + builder.constant(np.arange(50, dtype=np.float32)))
    (tmp_path / "a.pb").write_bytes(write_hlo_proto(module))
    (tmp_path / "a.pbtxt").write_text(write_pbtxt(module))
    (tmp_path / "saved").write_bytes(write_hlo_proto(module))
    (tmp_path / "bare.hlo").write_bytes(write_proto(module))
    (tmp_path / "written.txt").write_text(write_pbtxt(module))
    for name in ("a.pb", "a.pbtxt", "saved", "bare.hlo", "written.txt"):
        assert read_module(str(tmp_path / name)).to_proto() == module.to_proto()


def test_wrong_contents_name_the_file(tmp_path):
    path = tmp_path / "a.pb"
    path.write_bytes(b"\xff\xff")
    with pytest.raises(InputError, match=r"a\.pb: "):
        read_module(str(path))
    other = tmp_path / "a.hlo"
    other.write_bytes(b"\xff\xff")
    with pytest.raises(InputError, match=r"a\.hlo: expected HLO or StableHLO text in UTF-8, found byte 0xff at 0$"):
        read_module(str(other))


@pytest.mark.parametrize("name", ["a.hlo", "a.pb", "a"])
@pytest.mark.parametrize(
    ("contents", "what"),
    [
        (b"ML\xefR\x0dStableHLO_v1", "byte 5: the text does not end"),
        (b"\x1c\x00\x00\x00\x00\x00ML\xefR\x0dStableHLO_v1", "byte 10: the bytes end too early"),
        (b"\x93NUMPY\x01\x00", "found an array that NumPy saved"),
        (b"\x1f\x8b\x08\x00", "found compressed data"),
    ],
)
def test_other_files_are_named_for_what_they_are(tmp_path, name, contents, what):
    path = tmp_path / name
    path.write_bytes(contents)
    with pytest.raises(InputError, match=what):
        read_module(str(path))


def test_saved_arrays_are_no_program(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.zeros(3))
    with pytest.raises(InputError, match=r"a\.npz: expected HLO, found a ZIP archive"):
        read_module(str(tmp_path / "a.npz"))
