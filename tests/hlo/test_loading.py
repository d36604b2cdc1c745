"""Files are read by their contents, and by what their names promise."""

import pytest

from xlalite.hlo import ParseError, load, parse
from xlalite.hlo.proto.serialization import write_hlo_proto, write_pbtxt

TEXT = "HloModule m\n\nENTRY main {\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] negate(x)\n}\n"
MLIR = """module @jit_f {
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.negate %arg0 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
"""


def test_load_knows_the_forms(tmp_path):
    module = parse(TEXT)
    files = {
        "a.hlo": TEXT.encode(),
        "a.txt": module.to_string().encode(),
        "a.pb": module.to_proto(),
        "b.hlo.PB": write_hlo_proto(module),
        "a.pbtxt": write_pbtxt(module).encode(),
        "a.textproto": write_pbtxt(module).encode(),
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
        assert load(tmp_path / name).to_string() == module.to_string(), name
    (tmp_path / "a.mlir").write_text(MLIR)
    assert load(str(tmp_path / "a.mlir")).entry_computation.root.opcode == "negate"


def test_wrong_contents_are_refused(tmp_path):
    (tmp_path / "a.pb").write_text(TEXT)
    with pytest.raises(ParseError, match="byte"):
        load(tmp_path / "a.pb")
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none.pb")
