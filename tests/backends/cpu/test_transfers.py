"""Programs that exchange values with their host, or with other devices, in native code."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import ml_dtypes
import numpy as np
import pytest

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.hlo.errors import EvaluationError, ExecutionError
from xlalite.hlo.surroundings.host_transfers import HostTransfers, host_transfers
from xlalite.hlo.text import parse

PAIRS = 'frontend_attributes={_xla_send_recv_source_target_pairs="%s"}'
ECHO = """HloModule m
ENTRY e { t = token[] after-all()
 i = (VALUE, token[]) infeed(t)
 x = VALUE get-tuple-element(i), index=0
 u = token[] get-tuple-element(i), index=1
 ROOT o = token[] outfeed(x, u), outfeed_shape=VALUE }"""
RECV = """HloModule m
ENTRY e { t = token[] after-all()
 r = (f32[2], u32[], token[]) recv(t), channel_id=3, is_host_transfer=true
 d = (f32[2], token[]) recv-done(r), channel_id=3, is_host_transfer=true
 ROOT x = f32[2] get-tuple-element(d), index=0 }"""


def compiled(text: str, backend: str = "cpu"):
    return get_backend(backend).compile(parse(text), CompileOptions(num_threads=2))


def echo(shape: str):
    return compiled(ECHO.replace("VALUE", shape))


@pytest.mark.parametrize(
    ("shape", "value"),
    [
        ("f32[]", np.float32(3)),
        ("pred[3]", np.array([True, False, True])),
        ("s4[5]", np.arange(-2, 3).astype(ml_dtypes.int4)),
        ("f64[0,4]", np.zeros((0, 4))),
        ("c64[1000]", np.arange(1000).astype(np.complex64)),
        ("(f32[2], (s8[3], token[]), ())", (np.ones(2, np.float32), (np.arange(3, dtype=np.int8), None), ())),
    ],
)
def test_values_of_any_type_pass_through(shape: str, value: object) -> None:
    from xlalite.hlo.types.literal import Literal, Token

    value = (value[0], (value[1][0], Token()), ()) if isinstance(value, tuple) else value
    executable = echo(shape)
    assert not [d for d in executable.decisions() if d.verdict == "evaluated"]
    with host_transfers(HostTransfers([value])) as host:
        executable()
    (found,) = host.outfeed
    assert Literal(found) == Literal(value)
    assert not host.infeed


def test_what_a_program_is_fed_is_there_until_it_is_taken() -> None:
    executable, values = echo("f32[2]"), [np.full(2, n, np.float32) for n in range(4)]
    with host_transfers(HostTransfers(values[:2])) as host:
        compiled(ECHO.replace("VALUE", "f32[2]"), "interpreter")()
        executable()
        host.infeed.extend(values[2:])
        values[2][0] = 7
        assert [value.tolist() for value in host.infeed] == [[2, 2], [3, 3]]
        executable()
        host.infeed.clear()
        with pytest.raises(ExecutionError, match="the host has no more values"):
            executable()
    assert [host.outfeed.popleft().tolist() for _ in range(3)] == [[0, 0], [1, 1], [2, 2]]
    with pytest.raises(IndexError):
        host.outfeed.popleft()


def test_a_program_waits_for_its_host() -> None:
    executable, host = echo("f32[2]"), HostTransfers(timeout_seconds=60)
    feeder = threading.Timer(0.1, host.infeed.append, [np.ones(2, np.float32)])
    feeder.start()
    with host_transfers(host):
        executable()
    np.testing.assert_array_equal(host.outfeed, [[1, 1]])


def test_a_program_waits_for_another_one() -> None:
    send = compiled(
        """HloModule m
ENTRY e { x = f32[2] parameter(0)
 t = token[] after-all()
 s = (f32[2], u32[], token[]) send(x, t), channel_id=3, is_host_transfer=true
 ROOT d = token[] send-done(s), channel_id=3, is_host_transfer=true }"""
    )
    host, x = HostTransfers(timeout_seconds=60), np.array([1, 2], np.float32)

    def run_sender() -> None:
        with host_transfers(host):
            send(x)

    threading.Timer(0.1, run_sender).start()
    with host_transfers(host):
        np.testing.assert_array_equal(compiled(RECV)(), x)
    assert not host.channels


@pytest.mark.parametrize(("text", "message"), [(RECV, "nothing was sent to channel 3"), (ECHO, "no more values")])
def test_waiting_ends(text: str, message: str) -> None:
    executable = compiled(text.replace("VALUE", "f32[2]"))
    with (
        host_transfers(HostTransfers(timeout_seconds=0.1)),
        pytest.raises(ExecutionError, match=rf"{message} after 0.1 s"),
    ):
        executable()
    host = HostTransfers(timeout_seconds=1e9)
    threading.Timer(0.1, host.let_go).start()
    with host_transfers(host), pytest.raises(ExecutionError, match=message):
        executable()


@contextmanager
def interrupted() -> Iterator[None]:
    """Interrupts this thread, and again after a while: Python drops an interruption that meets a finalizer.

    A process that a shell started in the background would ignore it.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    main, is_over = threading.get_ident(), threading.Event()

    def interrupt() -> None:
        wait = 0.2
        while not is_over.wait(wait):
            signal.pthread_kill(main, signal.SIGINT)
            wait = 5.0

    threading.Thread(target=interrupt).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            yield
    finally:
        is_over.set()
        signal.signal(signal.SIGINT, before)


def test_waiting_can_be_interrupted() -> None:
    executable = echo("f32[2]")
    with interrupted(), host_transfers(HostTransfers(timeout_seconds=1e9)):
        executable()


def test_a_value_of_another_type_is_named() -> None:
    executable = echo("f32[2]")
    wrong = [np.zeros(3, np.float32), np.zeros(2), (np.zeros(2, np.float32),)]
    with host_transfers(HostTransfers([*wrong, np.ones(2, np.float32)])) as host:
        for found in (r"f32\[3\]", r"f64\[2\]", r"\(f32\[2\]\)"):
            with pytest.raises(ExecutionError, match=rf"the host gave {found}, the program expects f32\[2\]"):
                executable()
        executable()
    np.testing.assert_array_equal(host.outfeed, [[1, 1]])


def exchange(pairs: str, received: str = "f32[4]") -> str:
    named = PAIRS % pairs
    return f"""HloModule m, replica_count=2, num_partitions=2
ENTRY e {{ x = f32[4] parameter(0)
 k = s32[] parameter(1)
 t = token[] after-all()
 v = (f32[4], s32[]) tuple(x, k)
 s = ((f32[4], s32[]), u32[], token[]) send(v, t), channel_id=1, {named}
 sd = token[] send-done(s), channel_id=1
 r = (({received}, s32[]), u32[], token[]) recv(sd), channel_id=1, {named}
 rd = (({received}, s32[]), token[]) recv-done(r), channel_id=1
 ROOT y = ({received}, s32[]) get-tuple-element(rd), index=0 }}"""


ARGUMENTS = [(np.full(4, n, np.float32), np.int32(10 * n)) for n in range(4)]


@pytest.mark.parametrize("pairs", ["{{0,1},{1,0}}", "{{0,1}}", "{{1,1}}", "{{0,0},{0,1}}"])
def test_partitions_send_within_their_replica(pairs: str) -> None:
    text = exchange(pairs)
    executable = compiled(text)
    assert not [d for d in executable.decisions() if d.verdict == "evaluated"]
    expected = compiled(text, "interpreter").run_on_devices(ARGUMENTS)
    for one, other in zip(executable.run_on_devices(ARGUMENTS), expected, strict=True):
        np.testing.assert_array_equal(one[0], other[0])
        assert one[1] == other[1]


@pytest.mark.parametrize("backend", ["cpu", "interpreter"])
def test_nobody_waits_before_sending(backend: str) -> None:
    named = PAIRS % "{{0,1},{1,2},{2,0}}"
    text = f"""HloModule m, replica_count=3
ENTRY e {{ t = token[] after-all()
 r = (f32[4], u32[], token[]) recv(t), channel_id=1, {named}
 rd = (f32[4], token[]) recv-done(r), channel_id=1
 y = f32[4] get-tuple-element(rd), index=0
 x = f32[4] parameter(0)
 n = f32[4] negate(x)
 s = (f32[4], u32[], token[]) send(n, t), channel_id=1, {named}
 sd = token[] send-done(s), channel_id=1
 ROOT z = f32[4] exponential(y) }}"""
    found = compiled(text, backend).run_on_devices([one[:1] for one in ARGUMENTS[:3]])
    np.testing.assert_allclose([one[0] for one in found], np.exp([-2.0, 0.0, -1.0]), rtol=1e-6)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (exchange("{{0,1},{1,0}}", "f32[5]"), r"the host gave \(f32\[4\], s32\[\]\), the program expects \(f32\[5\]"),
        (exchange("{{0,2}}"), "needs device 2, there are 2"),
        (exchange("{{0,1}}").replace(PAIRS % "{{0,1}}", PAIRS % "{{1,0}}", 1), "nobody received|deadlock"),
        (exchange("{{0,1}}").replace("recv-done(r), channel_id=1", "recv-done(r), channel_id=2"), "deadlock: .*rd"),
    ],
)
def test_what_does_not_come_is_named(text: str, message: str) -> None:
    for backend in ("cpu", "interpreter"):
        with pytest.raises((EvaluationError, ExecutionError), match=message):
            compiled(text, backend).run_on_devices(ARGUMENTS)


def test_devices_that_wait_for_hosts_are_let_go_when_the_run_is_interrupted() -> None:
    executable = compiled(RECV.replace("HloModule m", "HloModule m, replica_count=2"))
    begin = time.monotonic()
    with interrupted():
        executable.run_on_devices([()] * 2, transfers=[HostTransfers(timeout_seconds=1e9) for _ in range(2)])
    assert time.monotonic() - begin < 30
