import os

import pytest

from xlalite.backends.cpu.native import threads
from xlalite.backends.cpu.native.threads import available_cpus, cgroup_cpu_quota, resolve_num_threads
from xlalite.hlo.errors import FlagError


def test_option_wins_over_environment(monkeypatch):
    monkeypatch.setenv("XLALITE_NUM_THREADS", "3")
    assert resolve_num_threads(5) == 5
    assert resolve_num_threads() == 3


def test_default_is_what_this_process_may_use(monkeypatch):
    monkeypatch.delenv("XLALITE_NUM_THREADS", raising=False)
    assert resolve_num_threads() == available_cpus()


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity here")
def test_affinity_is_respected():
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert available_cpus() == 1
    finally:
        os.sched_setaffinity(0, before)


def test_quota_is_read_again_after_a_while(monkeypatch):
    quotas, now = iter([1.0, 2.0]), [1e9]
    monkeypatch.setattr(threads, "cgroup_cpu_quota", lambda: next(quotas))
    monkeypatch.setattr(threads.os, "sched_getaffinity", lambda _: range(8), raising=False)
    monkeypatch.setattr(threads.time, "monotonic", lambda: now[0])
    assert [available_cpus(), available_cpus()] == [1, 1]
    now[0] += 1
    assert available_cpus() == 2


@pytest.mark.parametrize("wanted", [0, -1, 513, 2.0, "2", True])
def test_option_that_is_no_count_is_refused(wanted):
    with pytest.raises(FlagError, match=f"num_threads is {wanted!r}; expected an integer from 1 to 512"):
        resolve_num_threads(wanted)


@pytest.mark.parametrize("text", ["0", "-2", "many", "1.5", "9999"])
def test_environment_that_is_no_count_is_refused(monkeypatch, text):
    monkeypatch.setenv("XLALITE_NUM_THREADS", text)
    with pytest.raises(FlagError, match=r"XLALITE_NUM_THREADS is .*; expected an integer from 1 to 512"):
        resolve_num_threads()


def cgroup(tmp_path, membership: str, files: dict[str, str]) -> float | None:
    (tmp_path / "membership").write_text(membership)
    for name, text in files.items():
        path = tmp_path / "fs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return cgroup_cpu_quota(str(tmp_path / "fs"), str(tmp_path / "membership"))


@pytest.mark.parametrize(
    ("membership", "files", "quota"),
    [
        pytest.param("0::/a/b\n", {"a/b/cpu.max": "150000 100000\n"}, 1.5, id="its own limit"),
        pytest.param("0::/a/b\n", {"a/b/cpu.max": "max 100000\n", "a/cpu.max": "200000 100000\n"}, 2.0, id="outer"),
        pytest.param("0::/a/b\n", {"a/b/cpu.max": "max 100000\n"}, None, id="unlimited"),
        pytest.param("0::/hidden\n", {"cpu.max": "50000 100000\n"}, 0.5, id="group not visible in the container"),
        pytest.param("0::/\n", {}, None, id="root"),
        pytest.param("0::/a\n", {"a/cpu.max": "nonsense\n"}, None, id="unreadable"),
        pytest.param("0::/a\n", {"a/cpu.max": "1000 0\n"}, None, id="no period"),
        pytest.param("0::/a\n", {"a/cpu.max": "50.5 100\n"}, None, id="no integer"),
        pytest.param(
            "4:cpu,cpuacct:/job\n2:memory:/job\n",
            {"cpu/job/cpu.cfs_quota_us": "300000\n", "cpu/job/cpu.cfs_period_us": "100000\n"},
            3.0,
            id="version 1",
        ),
        pytest.param(
            "4:cpu:/job\n",
            {"cpu/job/cpu.cfs_quota_us": "-1\n", "cpu/job/cpu.cfs_period_us": "100000\n"},
            None,
            id="version 1 unlimited",
        ),
    ],
)
def test_quota_of_the_control_group(tmp_path, membership, files, quota):
    assert cgroup(tmp_path, membership, files) == quota


def test_no_control_group_is_no_limit(tmp_path):
    assert cgroup_cpu_quota(str(tmp_path), str(tmp_path / "missing")) is None
