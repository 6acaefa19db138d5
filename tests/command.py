"""Run ``keepsum`` as a process of its own without paying for its imports each time.

A command works for a tenth of a second and imports for two. So one process imports everything, once a session, and each
command is a fork of it with its own folder, environment, input, output and exit, as from a shell.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import gc
import io
import json
import os
import pty
import runpy
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from support import HANG

KEEPSUM = Path(sys.executable).with_name("keepsum")  # the installed program
LARGEST = 2**17  # bytes of a message: the arguments and the environment of a command
# What a shell runs as keepsum: it hands its arguments and streams to the process that forks commands.
STAND_IN = f"""#!{sys.executable} -IS
import json, os, socket, sys
channel = socket.socket(fileno=int(os.environ["KEEPSUM_COMMANDS"]))
request = {{"arguments": sys.argv[1:], "cwd": os.getcwd(), "environment": dict(os.environ)}}
channel.settimeout(None)
socket.send_fds(channel, [json.dumps(request).encode()], [0, 1, 2])
sys.exit(json.loads(channel.recv({LARGEST})))
"""


def installed(*arguments: object, cwd: Path, stdin: bytes | None = None, **options: Any) -> Any:
    """Run the installed program: status, output and errors."""
    command = [KEEPSUM, *map(str, arguments)]
    return subprocess.run(
        command, cwd=cwd, input=stdin, capture_output=True, check=False, **{"timeout": HANG, **options}
    )


def shell(lines: str, cwd: Path, programs: list[Path], pass_fds: Sequence[int] = (), **environment: str) -> Any:
    """Run lines in a shell with these folders of programs first, and a terminal on which yes is typed."""
    parent, child = pty.openpty()
    os.write(parent, b"y\n" * 20 + b"\x04")  # what is asked after that is met by the end of input
    path = os.pathsep.join(map(str, [*programs, Path(sys.executable).parent, os.environ["PATH"]]))
    try:
        return subprocess.run(
            ["sh", "-e", "-c", lines], cwd=cwd, stdin=child, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, check=False, timeout=HANG, pass_fds=pass_fds, env=os.environ | environment | {"PATH": path},
        )  # fmt: skip
    finally:
        os.close(parent)
        os.close(child)


class Commands:
    """Runs commands in forks of one process that has everything imported."""

    def __init__(self) -> None:
        self.channel, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.channel.settimeout(HANG)
        with other:
            command = [sys.executable, __file__, str(other.fileno())]
            # Threads of a linear algebra library would not live on in a fork.
            environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
            self.server = subprocess.Popen(
                command, pass_fds=[other.fileno()], env=environment, stdin=subprocess.DEVNULL
            )
        self.bin = Path(tempfile.mkdtemp(prefix="keepsum-bin-"))
        stand_in = self.bin / "keepsum"
        stand_in.write_text(STAND_IN, encoding="utf-8")
        stand_in.chmod(0o755)

    def run(self, *arguments: object, cwd: Path, stdin: bytes | int | None = None) -> Any:
        """Run keepsum with these arguments: status, output and errors; ``stdin`` is what it reads, or where from."""
        request = {"arguments": list(map(str, arguments)), "cwd": str(cwd), "environment": dict(os.environ)}
        reading, writing = os.pipe() if not isinstance(stdin, int) else (os.dup(stdin), None)
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            handles = array.array("i", [reading, out.fileno(), err.fileno()])
            self.channel.sendmsg(
                [json.dumps(request).encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, handles.tobytes())]
            )
            os.close(reading)
            feeder = threading.Thread(target=_feed, args=(writing, stdin or b""))
            feeder.start()
            answer = self.channel.recv(LARGEST)
            feeder.join()
            assert answer, "the process that commands are forked from has ended"
            out.seek(0)
            err.seek(0)
            status = json.loads(answer)
            return subprocess.CompletedProcess(["keepsum", *request["arguments"]], status, out.read(), err.read())

    def answered(self, answers: list[str], *arguments: object, cwd: Path) -> Any:
        """Run ``keepsum init`` with answers typed on a terminal."""
        parent, child = pty.openpty()
        # What is asked after the last answer is met by the end of input, so that nothing waits for another.
        os.write(parent, "".join(f"{answer}\n" for answer in answers).encode() + b"\x04")
        done = self.run("init", *arguments, cwd=cwd, stdin=child)
        os.close(parent)
        os.close(child)
        return done

    def shell(self, lines: str, cwd: Path) -> Any:
        """Run lines as they are copied into a shell on whose terminal every question is answered by yes.

        The output is that of both streams. Each ``keepsum`` in them is a fork, as in ``run``.
        """
        handle = self.channel.fileno()
        return shell(lines, cwd, [self.bin], pass_fds=[handle], KEEPSUM_COMMANDS=str(handle))

    def close(self) -> None:
        """End the process that commands are forked from."""
        shutil.rmtree(self.bin)
        self.channel.close()
        self.server.wait()


def _feed(handle: int | None, data: bytes) -> None:
    if handle is None:
        return
    try:
        with os.fdopen(handle, "wb") as pipe:
            pipe.write(data)
    except BrokenPipeError:
        pass  # a command that does not read its input


def serve(channel: socket.socket) -> None:
    """Fork a command for each message, and answer with its status."""
    import_everything()
    while True:
        message, handles, *_ = socket.recv_fds(channel, LARGEST, 3)
        if not message:
            return
        child = os.fork()
        if child == 0:
            channel.close()
            command(json.loads(message), handles)
        for handle in handles:
            os.close(handle)
        _, status = os.waitpid(child, 0)
        channel.send(json.dumps(os.waitstatus_to_exitcode(status)).encode())


def command(request: dict[str, Any], handles: list[int]) -> None:
    """Be the command that is asked for."""
    for target, handle in enumerate(handles):
        os.dup2(handle, target)
        os.close(handle)
    for number, stream in ((1, "stdout"), (2, "stderr")):  # may be a pipe, where this process had a file
        setattr(sys, stream, open(number, "w", buffering=1, encoding="utf-8", closefd=False))  # noqa: SIM115
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = [str(KEEPSUM), *request["arguments"]]
    try:
        runpy.run_path(str(KEEPSUM), run_name="__main__")  # the installed program's own lines
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            leave(end.code or 0)
        raise


def leave(status: int) -> None:
    """End as the interpreter does, but without taking apart all that was imported: that takes longer than a command."""
    threading._shutdown()
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        status = 120  # of the interpreter, where what was printed cannot be written
    os._exit(status)


def import_everything() -> None:
    """Whatever a command may need, nothing is drawn and no thread is started before a fork."""
    import importlib
    import pkgutil

    from typer.main import get_command

    import keepsum
    from keepsum.cli import app
    from keepsum.sampling.core import forking, kernel

    for module in pkgutil.walk_packages(keepsum.__path__, "keepsum."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for name in (
        *("scipy.stats", "scipy.optimize", "pyarrow.csv", "pyarrow.parquet", "pyarrow.dataset", "matplotlib.figure"),
        *("ibis.backends.duckdb", "ibis.backends.sqlite"),  # a second, for every command that counts records
    ):
        importlib.import_module(name)
    with contextlib.suppress(ModuleNotFoundError):
        importlib.import_module("typer._adapters")  # what typer imports at its first option, where it does
    kernel.library()
    with contextlib.redirect_stdout(io.StringIO()):  # no command prints to a terminal here
        program = get_command(app.build())
    app.build = lambda: program  # reading the options of every command takes longer than most commands
    forking._free_properties = lambda: None  # a command is no fork in a shell; no lock is held here, so none is freed
    gc.collect()
    gc.freeze()  # else the end of each fork would look through all of it


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as own:
        serve(own)
