"""The commands read protocol buffers where they read text."""

import numpy as np
import pytest

from xlalite.cli.reading import InputError, read_module, read_modules
from xlalite.hlo import Builder, DType, Shape
from xlalite.hlo.proto.serialization import write_hlo_proto, write_pbtxt


def test_protos_are_read_by_their_names(tmp_path):
    builder = Builder("large")
    x = builder.parameter(Shape.array(DType.F32, (50,)), "x")
    module = builder.build_module(x + builder.constant(np.arange(50, dtype=np.float32)))
    (tmp_path / "a.pb").write_bytes(write_hlo_proto(module))
    (tmp_path / "a.pbtxt").write_text(write_pbtxt(module))
    for name in ("a.pb", "a.pbtxt"):
        assert read_module(str(tmp_path / name)).to_proto() == module.to_proto()
        assert len(read_modules(str(tmp_path / name))) == 1


def test_wrong_contents_name_the_file(tmp_path):
    path = tmp_path / "a.pb"
    path.write_bytes(b"\xff\xff")
    with pytest.raises(InputError, match=r"a\.pb: "):
        read_module(str(path))
    other = tmp_path / "a.hlo"
    other.write_bytes(b"\xff\xff")
    with pytest.raises(InputError, match=r"must be called \*\.pb"):
        read_module(str(other))
