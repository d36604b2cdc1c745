"""Records as generated code and ctypes see them: the same fields at the same places."""

import ctypes

import pytest

from xlalite.backends.codegen.llvm import I8, I32, I64, PTR, VOID, LLVMBuildError, ModuleBuilder
from xlalite.backends.cpu.native.record import NULL, Record


class Mixed(ctypes.Structure):
    _fields_ = (
        ("small", ctypes.c_int8),
        ("count", ctypes.c_int32),
        ("gap", ctypes.c_int8 * 5),
        ("where", ctypes.c_void_p),
        ("size", ctypes.c_int64),
    )


def test_generated_code_and_ctypes_mean_the_same_fields(link_text, native_function):
    module = ModuleBuilder("record")
    fb = module.function("double_second", I64, (PTR,))
    table = Record(fb, Mixed, fb.parameters[0])
    record = Record.item(fb, Mixed, table.pointer, fb.constant(I64, 1))
    for name in ("small", "count", "size"):
        record.store(name, fb.add(record.load(name), record.load(name)))
    record.store("where", NULL)
    fb.ret(fb.zext(table.is_set("where"), I64))
    code = link_text(module.text())
    records = (Mixed * 2)(Mixed(1, 2, where=3, size=4), Mixed(-5, 6, where=7, size=1 << 40))
    found = native_function(code, "double_second", ctypes.c_int64, ctypes.c_void_p)(ctypes.addressof(records))
    assert found == 1
    assert [(r.small, r.count, r.where, r.size) for r in records] == [(1, 2, 3, 4), (-10, 12, None, 2 << 40)]


def test_atomic_access_to_fields(link_text, native_function):
    module = ModuleBuilder("record")
    fb = module.function("change", I32, (PTR,))
    record = Record(fb, Mixed, fb.parameters[0])
    before = record.atomic_rmw("add", "count", 10)
    record.atomic_store("size", 1, "release")
    was_exchanged = record.compare_exchange("small", fb.constant(I8, 3), fb.constant(I8, 4), "acq_rel")
    fb.ret(fb.add(fb.mul(before, 10), fb.add(record.atomic_load("count"), fb.zext(was_exchanged, I32))))
    change = native_function(code := link_text(module.text()), "change", ctypes.c_int32, ctypes.c_void_p)
    record = Mixed(3, 1)
    assert code.symbols == ("change",)
    assert change(ctypes.addressof(record)) == 10 + 11 + 1
    assert (record.small, record.count, record.size) == (4, 11, 1)
    assert change(ctypes.addressof(record)) == 110 + 21 + 0


@pytest.mark.parametrize(
    ("name", "message"),
    [("other", "Mixed has no field 'other'"), ("gap", "Mixed: field 'gap' is neither a number nor a pointer")],
)
def test_fields_that_cannot_be_loaded_are_refused(name, message):
    fb = ModuleBuilder("record").function("f", VOID, (PTR,))
    with pytest.raises(LLVMBuildError, match=message):
        Record(fb, Mixed, fb.parameters[0]).load(name)
