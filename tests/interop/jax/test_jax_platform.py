"""xlalite as a platform of jax, each program in a process of its own: jax chooses its platforms once."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytest.importorskip("jax")
pytestmark = pytest.mark.oracle

PREAMBLE = """
import jax, jax.numpy as jnp, numpy as np
from jax import lax
def near(found, wanted, tolerance=1e-5):
    np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), tolerance, tolerance)
def refused(call, text):
    try:
        call()
    except Exception as error:
        assert text in str(error), error
        return
    raise AssertionError("nothing was refused")
"""


def run(program: str, *, platforms: str = "xlalite,cpu", **variables: str) -> str:
    """Runs a program and gives what it printed; it must end well."""
    environment = {**os.environ, "JAX_PLATFORMS": platforms, **variables}
    code = PREAMBLE + "from xlalite.interop.jax.plugin import initialize\ninitialize()\n" * (platforms != "cpu")
    done = subprocess.run(
        [sys.executable, "-c", code + textwrap.dedent(program)], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_calls_do_not_enter_python() -> None:
    run("""
    import sys
    step = jax.jit(lambda x, y: (x * 2 + y, x.sum()), donate_argnums=1)
    x, y = jnp.ones(8), jnp.ones(8)
    for _ in range(3):
        y, total = step(x, y)
    entered = []
    sys.setprofile(lambda frame, event, _: event == "call" and entered.append(frame.f_code.co_qualname))
    for _ in range(3):
        y, total = step(x, y)
    sys.setprofile(None)
    assert not entered, entered
    """)


def test_excess_precision_is_allowed_where_it_is_asked_for() -> None:
    run("""
    cube = lambda x: x * x * x
    x = np.linspace(1, 2, 100, dtype=np.float32).astype(jnp.bfloat16)
    strict, once = x * x * x, (x.astype(np.float32) ** 3).astype(jnp.bfloat16)
    assert np.any(strict != once)
    assert np.array_equal(jax.jit(cube)(x), strict)
    for asked, wanted in ((True, once), (False, strict)):
        options = {"xla_allow_excess_precision": asked}
        assert np.array_equal(jax.jit(cube, compiler_options=options)(x), wanted)
    """)


def test_flags_of_the_environment_count(tmp_path: Path) -> None:
    program = """
    x = np.linspace(1, 2, 100, dtype=np.float32).astype(jnp.bfloat16)
    print(np.array_equal(jax.jit(lambda x: x * x * x)(x), x * x * x))
    """
    assert run(program, XLALITE_FLAGS="") == "True\n"
    assert run(program, XLALITE_FLAGS=f"--xla_allow_excess_precision --xla_dump_to={tmp_path}") == "False\n"
    assert any(tmp_path.iterdir())
    run('refused(lambda: jax.jit(jnp.sin)(1.0), "xla_dumpto")', XLALITE_FLAGS="--xla_dumpto=x")


def test_programs_give_what_numpy_gives() -> None:
    run("""
    assert jax.devices()[0].platform == "xlalite"
    x, y = np.linspace(-2, 2, 24, dtype=np.float32).reshape(4, 6), np.ones((6, 3), np.float32)
    near(jax.jit(lambda x, y: jnp.tanh(x) @ y)(x, y), np.tanh(x) @ y)
    near(jax.grad(lambda x: (jnp.sin(x) ** 2).sum())(x), np.sin(2 * x))
    near(lax.fori_loop(0, 5, lambda i, v: v * 2 + i, jnp.ones(3)), [58.0] * 3)
    near(jnp.linalg.cholesky(np.eye(3) * 4), np.eye(3) * 2)
    near(jnp.sort(x, 0), np.sort(x, 0))
    assert jax.random.normal(jax.random.key(0), (1000,)).std() > 0.9
    for name in "bfloat16 float16 int8 uint32 bool_ int4 float8_e4m3fn complex64".split():
        dtype = getattr(jnp, name)
        ones = jnp.ones((3, 5), dtype)
        assert (jnp.concatenate([ones, ones]) == ones[0]).all() and ones.dtype == dtype
    assert jnp.zeros((0, 3)).sum() == 0 and jnp.ones(()).item() == 1
    near(jnp.asarray(x[:, ::-2]), x[:, ::-2])
    near(jnp.asarray(x.T), x.T)
    """)


def test_memory_is_shared_where_it_may_be() -> None:
    run("""
    x = np.zeros(1 << 18, np.float32)
    on_device = jax.device_put(x)
    assert np.asarray(on_device).ctypes.data == x.ctypes.data
    y = jax.jit(lambda x: x + 1)(on_device)
    seen = np.asarray(y)
    assert seen.ctypes.data == np.asarray(y).ctypes.data
    del y
    assert (seen == 1).all()

    step = jax.jit(lambda x: x * 2 + 1, donate_argnums=0)
    a = jnp.ones(1000)
    place = a.unsafe_buffer_pointer()
    b = step(a)
    assert a.is_deleted() and b.unsafe_buffer_pointer() == place and (b == 3).all()
    refused(lambda: a + 1, "deleted")
    seen = np.asarray(b)
    c = step(b)  # `seen` still needs the memory
    assert (seen == 3).all() and (c == 7).all()
    kept = step(on_device)  # the memory is NumPy's
    assert (x == 0).all() and (kept == 1).all()
    two = jax.jit(lambda x, y: (x + 1, y + 1), donate_argnums=(0, 1))
    d = jnp.ones(3)
    refused(lambda: two(d, d), "donate")
    one = jax.jit(lambda x, y: x + y, donate_argnums=0)
    e = jnp.ones(3)
    refused(lambda: one(e, e), "a second time in the same call")
    """)


def test_python_functions_are_called_in_order_and_their_errors_arrive() -> None:
    printed = run("""
    from jax.experimental import io_callback
    near(jax.pure_callback(np.sin, jax.ShapeDtypeStruct((3,), np.float32), jnp.arange(3.0)), np.sin(np.arange(3.0)))
    @jax.jit
    def step(x):
        io_callback(lambda v: print("first", v), None, x, ordered=True)
        io_callback(lambda v: print("second", v), None, x + 1, ordered=True)
        jax.debug.print("third {}", x + 2)
        return x * 2
    assert step(1.0) == 2
    jax.effects_barrier()
    def wrong(x):
        raise ValueError("out of cheese")
    number = jax.ShapeDtypeStruct((), np.float32)
    refused(lambda: jax.pure_callback(wrong, number, 1.0).item(), "out of cheese")
    refused(lambda: jax.pure_callback(lambda x: np.zeros(2, np.float32), number, 1.0), "shape")
    def interrupted(x):
        raise KeyboardInterrupt("by hand")
    for _ in range(3):
        refused(lambda: jax.jit(lambda x: jax.pure_callback(interrupted, number, x) + 1)(1.0), "by hand")
    """)
    assert printed.split("\n")[:3] == ["first 1.0", "second 2.0", "third 3.0"]


def test_arrays_lie_in_the_memories_that_are_asked_for() -> None:
    run(
        """
    from jax.sharding import SingleDeviceSharding
    first, last = jax.devices()
    kinds = ["device", "pinned_host", "unpinned_host"]
    assert [each.kind for each in last.addressable_memories()] == kinds and last.default_memory().kind == "device"
    x = jnp.arange(4.0)
    def kind(array):
        return array.sharding.memory_kind, array.devices()
    for device in (first, last):
        for name in kinds:
            there = SingleDeviceSharding(device, memory_kind=name)
            moved = jax.device_put(x, there)
            assert kind(moved) == kind(jax.device_put(np.arange(4.0).reshape(2, 2).T, there)) == (name, {device})
            back = jax.device_put(moved, SingleDeviceSharding(first))
            assert kind(back) == ("device", {first})
            near(back, x)
            near(moved, x)
            given = jax.device_put(x, device)
            call = jax.jit(lambda v: (v + 1, v * 2), out_shardings=(there, SingleDeviceSharding(device)))
            one, two = call(given)
            assert kind(one) == (name, {device}) and kind(two) == ("device", {device})
            near(one, x + 1)
            assert "custom-call" not in call.lower(given).compile().as_text()
        there = SingleDeviceSharding(device, memory_kind="pinned_host")
        moved = jax.device_put(x, there)
        assert kind(jax.jit(lambda v: v + 1)(moved)) == ("pinned_host", {device})
        inside = jax.jit(lambda v: jax.device_put(v, SingleDeviceSharding(device)) + 1)(moved)
        assert kind(inside) == ("device", {device})
    """,
        XLA_FLAGS="--xla_force_host_platform_device_count=2",
    )


@pytest.mark.parametrize("name", ["xlalite", "cpu"])
def test_python_functions_write_into_results(name: str) -> None:
    run(
        """
    import pytest
    buffer_callback = pytest.importorskip("jax.experimental.buffer_callback").buffer_callback
    def both(context, out, x, *, scale):
        assert x.shape == out[0].shape == (3,) and x.dtype == np.float32 and out[1].writeable and not x.writeable
        refused(lambda: context.stream, "GPU context")
        np.asarray(out[0])[...] = np.asarray(x) * np.asarray(scale)
        np.from_dlpack(out[1])[...] = np.from_dlpack(x).sum()
    shapes = jax.ShapeDtypeStruct((3,), np.float32), jax.ShapeDtypeStruct((), np.float32)
    scaled = buffer_callback(both, shapes, vmap_method="sequential")
    x = jnp.arange(6.0).reshape(2, 3)
    for found, wanted in zip(jax.jit(jax.vmap(lambda v: scaled(v + 1, scale=jnp.float32(2))))(x),
                             (2 * (x + 1), (x + 1).sum(1))):
        near(found, wanted)
    def add(context, out, x, y):
        assert np.shares_memory(np.asarray(out), np.asarray(x))
        np.asarray(out)[...] += np.asarray(y)
    added = jax.jit(buffer_callback(add, jax.ShapeDtypeStruct((2, 3), np.float32), input_output_aliases={0: 0}))
    near(added(x, x + 1), 2 * x + 1)
    near(x, np.arange(6.0).reshape(2, 3))
    def wrong(context, out): return 1
    refused(buffer_callback(wrong, shapes), "must not return any values")
    """,
        XLALITE_JAX_PLATFORM_NAME=name,
    )


def test_rules_for_processors_that_are_registered_late_serve_too() -> None:
    run("""
    from jax.experimental import sparse
    from jax.experimental.sparse.linalg import spsolve  # a Python function, by its second name
    matrix = np.eye(4, dtype=np.float32) * 2 + np.eye(4, k=1, dtype=np.float32)
    rows = sparse.BCSR.fromdense(jnp.asarray(matrix))
    near(spsolve(rows.data, rows.indices, rows.indptr, jnp.ones(4)), np.linalg.solve(matrix, np.ones(4)))
    near(rows @ jnp.eye(4), matrix)
    far = sparse.BCSR((rows.data, rows.indices + 1000000, rows.indptr), shape=rows.shape)
    near(far @ jnp.eye(4), 0 * matrix)
    """)


def test_several_devices_exchange() -> None:
    run(
        """
    from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
    assert len(jax.devices()) == 3
    x = jnp.arange(6.0).reshape(3, 2)
    near(jax.pmap(lambda v: v - lax.pmean(v, "i"), axis_name="i")(x), x - x.mean(0))
    near(jax.device_put(x, jax.devices()[2]) + 1, x + 1)
    assert (jax.device_put(x, jax.devices()[2]) + 1).devices() == {jax.devices()[2]}
    mesh = Mesh(np.array(jax.devices()), "x")
    split = jax.device_put(x, NamedSharding(mesh, P("x")))
    near(jax.jit(lambda v: v.sum(0))(split), x.sum(0))
    if start := getattr(jax._src.lax.parallel, "psum_start", None):
        total = jax.shard_map(lambda v: start(v, "x").done(), mesh=mesh, in_specs=P("x"), out_specs=P("x"))
        near(jax.jit(total)(split), x.sum(0) * jnp.ones((3, 1)))
    """,
        XLA_FLAGS="--xla_force_host_platform_device_count=3",
    )


def test_programs_over_arrays_on_several_devices_run_as_a_whole() -> None:
    run(
        """
    from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
    mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("a", "b"))
    on = lambda *spec: NamedSharding(mesh, P(*spec))
    x = np.arange(32.0, dtype=np.float32).reshape(4, 8)
    wanted = x * 2 + x.sum(0), x.T @ x, x.max()
    for given in (on("a", "b"), on(("b", "a")), on(None, "b"), on()):
        places = on("b", "a"), on(("a", "b")), None
        step = jax.jit(lambda v: (v * 2 + v.sum(0), v.T @ v, v.max()), out_shardings=places)
        made = step(jax.device_put(x, given))
        for found, expected in zip(made, wanted):
            near(found, expected)
            for shard in found.addressable_shards:
                near(shard.data, expected[shard.index])
        assert [each.sharding.spec for each in made] == [P("b", "a"), P(("a", "b")), P()]
    split = jax.device_put(x, on("a", "b"))
    near(jax.jit(lambda v, w: (v + w).astype(jnp.int32), donate_argnums=0)(split, np.ones(8, np.float32)), x + 1)
    near(split[1:3, ::2] + jnp.sin(split)[1:3, ::2], (x + np.sin(x))[1:3, ::2])
    ordered = Mesh(np.array(jax.devices())[::-1], "x")
    near(jax.jit(lambda v: v.sum(1))(jax.device_put(x, NamedSharding(ordered, P("x")))), x.sum(1))
    """,
        XLA_FLAGS="--xla_force_host_platform_device_count=4",
    )


def test_devices_do_parts_of_programs() -> None:
    run(
        """
    from jax.sharding import NamedSharding, PartitionSpec as P
    mesh = jax.make_mesh((2, 2), ("a", "b"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    x = np.arange(32.0, dtype=np.float32).reshape(4, 8)
    split = jax.device_put(x, NamedSharding(mesh, P("b", "a")))
    def mapped(function, given, made, **options):
        return jax.shard_map(function, mesh=mesh, in_specs=given, out_specs=made, **options)
    both = P(("b", "a"))
    total = mapped(lambda v, w: (lax.psum(v, "a"), w * lax.axis_index("b")), (P("a"), both), (P(), both))
    for found, expected in zip(jax.jit(lambda v: total(v + 1, v * 2))(split),
                               ((x + 1).reshape(2, 2, 8).sum(0), x * 2 * np.arange(2).repeat(2)[:, None])):
        near(found, expected)
    turned = mapped(lambda v: lax.ppermute(v, "b", [(0, 1), (1, 0)]), P("a", "b"), P("a", "b"))
    loop = jax.jit(lambda v: lax.scan(lambda c, _: (turned(c) + 1, c.sum()), v, None, length=3))
    last, sums = loop(split)
    near(last, np.roll(x, 4, axis=1) + 3)
    near(sums, x.sum() + 32 * np.arange(3))
    square = jax.grad(lambda v: (turned(v) ** 2).sum() + v.sum())
    near(jax.jit(square)(split), 2 * x + 1)
    inner = lambda v: jax.shard_map(lambda w: w + lax.psum(w, "b"), in_specs=P(None, "b"), out_specs=P(None, "b"),
                                    axis_names={"b"})(v)
    nested = jax.jit(mapped(lambda v: inner(v) + lax.psum(v.sum(), "a"), P("a"), P("a"), axis_names={"a"}))
    for given in (split, x):
        near(nested(given), x + np.tile(x[:, :4] + x[:, 4:], 2) + x.sum())
    shouted = lambda v: total(v, v)[0] + jax.pure_callback(np.sin, jax.ShapeDtypeStruct((), np.float32), v[0, 0])
    refused(lambda: jax.jit(shouted)(split), "cannot call Python functions")
    assert "custom-call" not in jax.jit(lambda v: turned(v) + 1).lower(split).compile().as_text()
    """,
        XLA_FLAGS="--xla_force_host_platform_device_count=4",
    )


def test_jax_is_told_how_programs_cut_arrays() -> None:
    run(
        """
    from jax.sharding import Mesh, PartitionSpec as P
    x = jnp.arange(16.0).reshape(4, 4)
    total = jax.pmap(lambda v: lax.psum(v, "i"), axis_name="i")
    for given, expected in zip(jax.jvp(total, (x,), (2 * x,)), (x, 2 * x), strict=True):
        near(given, jnp.broadcast_to(expected.sum(0), (4, 4)))
    near(jax.vjp(total, x)[1](np.asarray(x))[0], jnp.broadcast_to(x.sum(0), (4, 4)))
    mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("a", "b"))
    in_specs, out_specs = (P("b", "a"), P(None, "b"), P()), (P("b", None), P(None, ("b", "a")))
    step = jax.shard_map(lambda x, y, z: (lax.psum(x, "a") + z, y[:, :1]), mesh=mesh, in_specs=in_specs,
                         out_specs=out_specs, check_vma=False)
    program = jax.jit(step).lower(x, x[:2], np.float32(3)).compile()
    given, made = program.input_shardings[0], program.output_shardings
    for sharding, spec, array in zip((*given, *made), (*in_specs, *out_specs), (x, x[:2], x[0, 0], x, x[:2])):
        wanted = jax.sharding.NamedSharding(mesh, spec).devices_indices_map(array.shape)
        assert sharding.devices_indices_map(array.shape) == wanted
    near(program(x, x[:2], np.float32(3))[0], x[:, :2] + x[:, 2:] + 3)
    """,
        XLA_FLAGS="--xla_force_host_platform_device_count=4",
    )


def test_arrays_of_several_devices_are_given_away_and_deleted_while_they_are_read() -> None:
    run(
        """
    import threading
    step = jax.pmap(lambda v: v * 2 + 1, donate_argnums=0)
    fresh, in_use = jax.pmap(lambda v: v + 1), lambda: jax.devices()[0].memory_stats()["bytes_in_use"]
    a = fresh(np.zeros((2, 1000), np.float32))
    places = [shard.data.unsafe_buffer_pointer() for shard in a.addressable_shards]
    b = step(a)
    assert a.is_deleted()
    assert [shard.data.unsafe_buffer_pointer() for shard in b.addressable_shards] == places
    seen = [np.asarray(shard.data) for shard in b.addressable_shards]
    c = step(b)  # `seen` still needs the memory
    assert all((part == 3).all() for part in seen) and (np.asarray(c) == 7).all()
    refused(lambda: step(b), "deleted")
    executable = jax.pmap(lambda v, w: (v + w, v.sum()), donate_argnums=0).lower(c, c).compile().runtime_executable()
    refused(lambda: executable.execute_sharded([c, c]), "a second time in the same call")
    refused(lambda: executable.execute_sharded([c]), "the arguments are not those of the program")
    assert not c.is_deleted()

    total = jax.pmap(lambda v: jnp.sin(lax.psum(v, "i")).sum(), axis_name="i")
    zeros = np.zeros((2, 200_000), np.float32)
    x = fresh(zeros)
    wanted, found, failures = np.asarray(total(x))[0], [], []
    def work(x):
        try:
            found.append(np.asarray(total(x))[0])
        except (RuntimeError, ValueError) as error:
            failures.append(str(error))
    before = in_use()
    for number in range(20):
        x = fresh(zeros)
        thread = threading.Thread(target=work, args=(x,))
        thread.start()
        if number % 2:
            x.delete()
        thread.join()
    del x
    assert len(found) + len(failures) == 20 and len(found) >= 10 and set(found) == {wanted}
    assert all("delete" in failure for failure in failures) and in_use() <= before
    """,
        XLA_FLAGS="--xla_force_host_platform_device_count=2",
    )


def test_compiled_programs_are_shown_and_kept() -> None:
    run("""
    from xlalite.backends.cpu.executable import CpuExecutable
    show, CpuExecutable.as_text = CpuExecutable.as_text, None  # compilation itself shows nothing
    lowered = jax.jit(lambda x: jnp.exp(x) @ x).lower(np.ones((16, 16), np.float32))
    compiled = lowered.compile()
    near(jax.jit(lambda x, *y: (x + 1, y))(1.0, (), 2)[0], 2.0)
    CpuExecutable.as_text = show
    assert "ENTRY" in compiled.as_text() and "exponential" in compiled.as_text()
    assert compiled.cost_analysis()["flops"] > 16**3
    assert compiled.memory_analysis().output_size_in_bytes == 1024
    from jax.experimental.serialize_executable import deserialize_and_load, serialize
    from xlalite.backends.cpu.backend import CpuBackend
    saved, compile_any = serialize(compiled), CpuBackend.compile
    CpuBackend.compile = None  # loading compiles nothing
    loaded = deserialize_and_load(*saved)
    CpuBackend.compile = compile_any
    near(loaded(np.ones((16, 16), np.float32)), np.full((16, 16), 16 * np.e))
    assert loaded.as_text() == compiled.as_text()
    assert loaded.cost_analysis() == compiled.cost_analysis()
    lowered.compile({"xla_embed_ir_in_executable": True})
    refused(lambda: lowered.compile({"no_such": 1}), "No such compile option: 'no_such'")
    """)


def test_many_threads_call_at_once_and_nothing_leaks() -> None:
    run("""
    import threading
    f = jax.jit(lambda x: jnp.tanh(x) + 1)
    x = jnp.ones(1000)
    f(x)
    before = jax.devices()[0].memory_stats()["bytes_in_use"]
    def work():
        for _ in range(2000):
            y = f(x)
        near(y, np.tanh(1.0) + 1)
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert jax.devices()[0].memory_stats()["bytes_in_use"] - before < 100_000
    """)


def test_arrays_may_be_deleted_while_a_program_reads_them() -> None:
    run("""
    import threading
    f, in_use = jax.jit(lambda x: jnp.sin(x).sum()), lambda: jax.devices()[0].memory_stats()["bytes_in_use"]
    x = jnp.ones(1_000_000)
    wanted, before, found = float(f(x)), in_use(), []
    def work(x):
        try:
            found.append(float(f(x)))
        except RuntimeError as error:
            assert "delete" in str(error)
    for _ in range(20):
        x = jnp.ones(1_000_000)
        thread = threading.Thread(target=work, args=(x,))
        thread.start()
        x.delete()
        thread.join()
    assert set(found) <= {wanted} and in_use() <= before
    """)


def test_arguments_that_a_program_does_not_expect_are_refused() -> None:
    run("""
    executable = jax.jit(lambda x: -x).lower(jnp.ones(1000)).compile().runtime_executable()
    for arguments in ([], [jnp.ones(3)], [jnp.ones(1000)] * 2):
        refused(lambda: executable.execute_sharded(arguments), "the arguments are not those of the program")
    near(executable.execute_sharded([jnp.ones(1000)]).disassemble_into_single_device_arrays()[0][0], -np.ones(1000))
    """)


def test_layouts_other_than_row_major_are_refused() -> None:
    run("""
    from jax.experimental.layout import Format, Layout
    from jax.sharding import SingleDeviceSharding
    place, x = SingleDeviceSharding(jax.devices()[0]), jnp.ones((2, 3))
    rows, columns = (Format(Layout(order), place) for order in ((0, 1), (1, 0)))
    near(jax.jit(lambda v: v + 1, in_shardings=rows, out_shardings=rows)(x), 2 * np.ones((2, 3)))
    automatic = Format(Layout.AUTO, place)
    near(jax.jit(lambda v: v + 1, out_shardings=automatic).lower(x).compile()(x), 2 * np.ones((2, 3)))
    for call, what in ((lambda: jax.device_put(x, columns), "result 0 in the layout {0,1}"),
                       (lambda: jax.jit(lambda v: v + 1, in_shardings=columns)(x), "argument 0 in the layout {0,1}")):
        refused(call, "xlalite keeps arrays in row-major order, and this asks for " + what)
    """)


def test_the_name_can_be_cpu() -> None:
    run(
        """
    assert jax.devices()[0].platform == "cpu" and "xlalite" in jax.devices()[0].client.platform_version
    y = jnp.arange(3.0) * 2
    near(np.from_dlpack(y), [0, 2, 4])
    """,
        XLALITE_JAX_PLATFORM_NAME="cpu",
    )


def test_nobody_gets_the_platform_unasked() -> None:
    run(
        """
    from xlalite.interop.jax.plugin import initialize
    initialize()
    assert "xlalite" not in jax.devices()[0].client.platform_version
    """,
        platforms="cpu",
    )


def test_functions_are_explained_on_every_platform() -> None:
    run(
        """
    from xlalite.interop.jax import compiled, explain
    decisions = explain(lambda x: jnp.tanh(x).sum() + 1, np.ones((64, 64), np.float32))
    assert any("fus" in str(decision) for decision in decisions)
    assert "define" in compiled(jax.jit(jnp.sin), np.ones(3, np.float32)).as_text("llvm")
    """,
        platforms="cpu",
    )
