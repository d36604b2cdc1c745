"""What forks wait for."""

from __future__ import annotations

import os

import pytest

FORK = """
import importlib, os, signal, sys, threading
from importlib.machinery import ModuleSpec
import xlalite.backends.cpu.native.fork_lock

begun, may_end, ended = threading.Event(), threading.Event(), threading.Event()

class Slow:
    def find_spec(self, name, path=None, target=None):
        return ModuleSpec(name, self) if name == NAME else None
    def create_module(self, spec):
        return None
    def exec_module(self, module):
        begun.set()
        may_end.wait(ENOUGH)

def work():
    importlib.import_module(NAME)
    ended.set()

sys.meta_path.insert(0, Slow())
other = threading.Thread(target=work)
other.start()
begun.wait()
child = os.fork()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
@pytest.mark.parametrize("name", ["xlalite.slow", "encodings.slow"])
def test_a_child_has_the_modules_that_another_thread_was_importing(run_python, name):
    program = """
if child == 0:
    signal.alarm(20)
    importlib.import_module(NAME)
    os._exit(0)
print(ended.wait(20), os.waitpid(child, 0)[1])
"""
    text = f"NAME, ENOUGH = {name!r}, 0.2\n" + FORK + program
    output, errors = run_python(text, PYTHONWARNINGS="ignore").communicate(timeout=60)
    assert output.strip() == "True 0", errors


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_a_fork_does_not_wait_for_modules_of_others(run_python):
    program = """
if child == 0:
    os._exit(0)
print(ended.is_set(), os.waitpid(child, 0)[1])
may_end.set()
other.join()
"""
    text = "NAME, ENOUGH = 'slow', 60\n" + FORK + program
    output, errors = run_python(text, PYTHONWARNINGS="ignore").communicate(timeout=60)
    assert output.strip() == "False 0", errors
