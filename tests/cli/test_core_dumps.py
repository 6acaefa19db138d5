"""A command that crashes leaves no core dump, in which its counts would stand."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

CRASH = "os.kill(os.getpid(), signal.{signal})"
ALONE = f"import os, signal; {CRASH}"
# The program as it is installed, which crashes where a command would run.
COMMAND = f"""
import os, signal
import keepsum.cli.app, keepsum_shell
keepsum.cli.app.run = lambda *_: {CRASH}
keepsum_shell.main()
"""
# Both limits, and PR_GET_DUMPABLE.
READ = "*resource.getrlimit(resource.RLIMIT_CORE), ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)"
LIMITS = f"""
import ctypes, resource
import keepsum.cli.app, keepsum_shell
keepsum.cli.app.run = lambda *_: print({READ})
keepsum_shell.main()
"""


def allow_cores() -> None:
    """The most that a shell may have allowed."""
    most = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (most, most))


def crashed(code: str, number: signal.Signals, folder: Path) -> tuple[int, bool]:
    """The signal that ended a program, and whether its core was dumped."""
    command = [sys.executable, "-c", code.format(signal=number.name)]
    process = subprocess.Popen(command, cwd=folder, preexec_fn=allow_cores)
    _, status = os.waitpid(process.pid, 0)
    process.returncode = status
    return os.WTERMSIG(status), os.WCOREDUMP(status)


@pytest.mark.parametrize("number", [signal.SIGABRT, signal.SIGQUIT])
def test_a_command_that_crashes_dumps_no_core(number, tmp_path):
    if not crashed(ALONE, number, tmp_path)[1]:
        pytest.skip("no program dumps its core on this system")
    place = tmp_path / "command"
    place.mkdir()
    assert crashed(COMMAND, number, place) == (number, False)
    assert list(place.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has processes that are not dumpable")
def test_a_command_is_not_dumpable_and_has_no_room_for_a_core():
    """Where crashes go to a program, the limit alone would not keep the memory in."""
    done = subprocess.run([sys.executable, "-c", LIMITS], capture_output=True, text=True, preexec_fn=allow_cores)
    assert done.stdout.split() == ["0", "0", "0"], done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has processes that are not dumpable")
def test_the_library_leaves_its_process_as_it_was():
    code = f"import ctypes, resource, keepsum as ks; ks.rng().below(7); print({READ})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, preexec_fn=allow_cores)
    most = resource.getrlimit(resource.RLIMIT_CORE)[1]
    assert done.stdout.split() == [str(most), str(most), "1"], done.stderr
