"""The loader of object files does what LLVM's linker does, and declines what it does not know."""

import ctypes
import platform
import random
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from xlalite.backends.cpu.native.elf_loader import load
from xlalite.backends.cpu.native.jit import compile_ir
from xlalite.backends.cpu.native.llvm_linker import link_by_llvm
from xlalite.backends.cpu.native.object_code import IrSource, ObjectCode, joined

pytestmark = pytest.mark.skipif(
    (sys.platform, platform.machine()) != ("linux", "x86_64"), reason="the loader knows x86-64 Linux"
)

PROGRAM = """
@table = internal constant [4 x i64] [i64 1, i64 20, i64 300, i64 4000], align 64
@count = global i64 5
@zeros = internal global [100 x i64] zeroinitializer, align 64
@entry = internal global ptr @twice
@shared = external global i64
declare i64 @labs(i64)
declare i64 @elsewhere(i64)
define weak i64 @replaced() {
  ret i64 -1
}
define internal i64 @twice(i64 %x) noinline {
  %y = shl i64 %x, 1
  ret i64 %y
}
define i64 @run(i64 %i) {
  %p = getelementptr i64, ptr @table, i64 %i
  %t = load i64, ptr %p
  %n = load i64, ptr @count
  %m = add i64 %n, 1
  store i64 %m, ptr @count
  %z = getelementptr i64, ptr @zeros, i64 %i
  %o = load i64, ptr %z
  store i64 7, ptr %z
  %f = load ptr, ptr @entry
  %d = call i64 %f(i64 %t)
  %e = call i64 @elsewhere(i64 %d)
  %s = load i64, ptr @shared
  %g = sub i64 0, %s
  %a = call i64 @labs(i64 %g)
  %w = call i64 @replaced()
  %1 = add i64 %n, %o
  %2 = add i64 %1, %e
  %3 = add i64 %2, %a
  %4 = add i64 %3, %w
  ret i64 %4
}
"""
OTHER = (
    "define i64 @elsewhere(i64 %x) {\n  %y = add i64 %x, 100000\n  ret i64 %y\n}\ndefine i64 @replaced() { ret i64 3 }"
)
WHOLE = PROGRAM.replace("declare i64 @elsewhere(i64)\n", OTHER.replace("@replaced", "@other"))


@pytest.mark.parametrize("linker", ["loader", "LLVM"])
def test_code_data_and_imports_find_each_other(linker):
    shared = ctypes.c_int64(1000000)
    images = [compile_ir(IrSource(text)).image for text in (PROGRAM, OTHER)]
    arguments = (images, ("run", "count"), {"shared": ctypes.addressof(shared)})
    if linker == "loader":
        code = load(*arguments)
        addresses = code.addresses
    else:
        code, addresses = link_by_llvm(*arguments)
    run = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(addresses["run"])
    assert [run(i) for i in (0, 3, 3)] == [1100010, 1108009, 1108017]
    assert ctypes.c_int64.from_address(addresses["count"]).value == 8
    del code


@pytest.mark.parametrize(
    "text",
    [
        "declare void @xlalite_missing()\ndefine void @f() {\n  call void @xlalite_missing()\n  ret void\n}",
        "@x = thread_local global i32 1\ndefine i32 @f() {\n  %v = load i32, ptr @x\n  ret i32 %v\n}",
        "@x = common global i32 0\ndefine i32 @f() {\n  %v = load i32, ptr @x\n  ret i32 %v\n}",
    ],
    ids=["missing symbol", "thread-local variable", "common variable"],
)
def test_what_only_llvm_knows_is_declined(text):
    assert load([compile_ir(IrSource(text)).image], ("f",), {}) is None


def test_what_is_defined_twice_is_declined():
    image = compile_ir(IrSource(OTHER)).image
    assert load([image, image], ("elsewhere",), {}) is None
    assert load([image], ("nowhere",), {}) is None


def test_damaged_objects_do_no_harm():
    image = compile_ir(IrSource(WHOLE)).image
    source, shared = random.Random(0), ctypes.c_int64()
    for _ in range(400):
        damaged = bytearray(image[: source.choice((len(image), source.randrange(len(image))))])
        for _ in range(source.randrange(4) if damaged else 0):
            damaged[source.randrange(len(damaged))] = source.randrange(256)
        load([bytes(damaged)], ("run",), {"shared": ctypes.addressof(shared)})


def test_numbers_that_lead_out_of_an_object_do_no_harm():
    image, shared = compile_ir(IrSource(WHOLE)).image, ctypes.c_int64()
    (table,), (count,) = struct.unpack_from("<Q", image, 40), struct.unpack_from("<H", image, 60)
    places = [40, *(table + 64 * number + field for number in range(count) for field in range(8, 64, 8))]
    for number in range(count):
        (kind,), (start, size) = (struct.unpack_from(*one) for one in _fields(image, table + 64 * number))
        if kind in (2, 4):  # symbols and relocations
            places += range(start, start + size, 8)
    for place in places:
        for value in (0, 1 << 31, 1 << 40, 1 << 62, 1 << 63, (1 << 64) - 1):
            damaged = bytearray(image)
            struct.pack_into("<Q", damaged, place, value)
            code = load([bytes(damaged)], ("run",), {"shared": ctypes.addressof(shared)})
            assert code is None or any(0 <= code.addresses["run"] - begin < size for begin, size in _mapped())


def test_archives_with_members_of_negative_size_end():
    code = ObjectCode(joined([b"one", b"two"]).replace(b"3         `", b"-60       `"), ())
    with pytest.raises(ValueError, match="a member of -60 bytes"):
        print(code.images)


def _fields(image: bytes, header: int) -> tuple[tuple[str, bytes, int], tuple[str, bytes, int]]:
    """How to read the type of a section, and where its bytes are."""
    return ("<I", image, header + 4), ("<QQ", image, header + 24)


def _mapped() -> list[tuple[int, int]]:
    """Address and size of each range of memory that may be executed."""
    lines = [line.split() for line in Path("/proc/self/maps").read_text().splitlines()]
    ranges = [tuple(int(end, 16) for end in words[0].split("-")) for words in lines if "x" in words[1]]
    return [(begin, end - begin) for begin, end in ranges]


def test_memory_goes_with_the_code():
    def mapped() -> int:
        return len(Path("/proc/self/maps").read_text().splitlines())

    image = compile_ir(IrSource(WHOLE)).image
    codes = [load([image], ("run",), {"shared": 0}) for _ in range(50)]
    many = mapped()
    assert all(codes)
    codes.clear()
    assert mapped() < many


LEAVE = """
import ctypes, threading
from xlalite.backends.cpu.native.jit import compile_ir
from xlalite.backends.cpu.native.elf_loader import load
from xlalite.backends.cpu.native.object_code import IrSource
text = "define void @call(ptr %f) uwtable {\\n  call void %f(ptr null)\\n  ret void\\n}"
code = load([compile_ir(IrSource(text)).image], ("call",), {})
process = ctypes.CDLL(None)
leave = ctypes.cast(process.pthread_exit, ctypes.c_void_p).value
thread, word = ctypes.c_void_p(), ctypes.c_void_p
process.pthread_create(ctypes.byref(thread), None, word(code.addresses["call"]), word(leave))
process.pthread_join(thread, None)
print("left")
"""


def test_thread_may_end_inside_loaded_code():
    assert subprocess.run([sys.executable, "-c", LEAVE], capture_output=True, text=True, timeout=60).stdout == "left\n"


def test_warm_process_needs_neither_llvm_nor_what_takes_long_to_import(tmp_path):
    program = (
        "import sys\n"
        "before = {*sys.modules}\n"
        "import numpy as np, xlalite as xl\n"
        "f = xl.jit(lambda x: np.exp(x).sum())\n"
        "f(np.ones(100, np.float32))\n"
        "names = {'xlalite.backends.codegen.llvm.library', 'llvmlite.binding', 'xlalite.passes.pipelines'}\n"
        "names |= {'pathlib', 'shutil'}\n"
        "print(*sorted(names & {*sys.modules} - before))"
    )
    outputs = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PATH": "", "XLALITE_CACHE_DIR": str(tmp_path / "cache")},
            capture_output=True,
            text=True,
            timeout=60,
        ).stdout
        for _ in range(2)
    ]
    assert "xlalite.backends.codegen.llvm.library" in outputs[0]
    assert "llvmlite.binding" not in outputs[0]  # its Python layer takes longer than the program
    assert outputs[1] == "\n"
