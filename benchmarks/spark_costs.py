"""What a piece of work costs this machine: CPU time and memory of all its processes, and what Spark moved for it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

TICKS = os.sysconf("SC_CLK_TCK")


class Costs:
    """Wall and CPU seconds of a piece of work, of this process and all below it, and the most memory of some."""

    def __enter__(self) -> Costs:
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
        self._wall, self._cpu = time.perf_counter(), cpu_below(os.getpid())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.wall, self.cpu = time.perf_counter() - self._wall, cpu_below(os.getpid()) - self._cpu
        self.memory = {pid: peak(pid) for pid in [os.getpid(), *below(os.getpid())]}

    def figures(self, processes: Sequence[int]) -> dict[str, Any]:
        """Seconds, and the most bytes of memory of each of some processes."""
        return {"wall": self.wall, "cpu": self.cpu, "memory": [self.memory[pid] for pid in processes]}

    def most_of(self, command: str) -> int:
        """The most memory of any process below this one whose command line has these words."""
        own = {os.getpid()}
        return max(
            (size for pid, size in self.memory.items() if pid not in own and command in _command(pid)), default=0
        )


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def below(pid: int) -> list[int]:
    """All processes that descend from one."""
    parents: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents.setdefault(int(_fields(path)[1]), []).append(int(path.parent.name))
        except OSError:  # it has ended
            continue
    found, waiting = [], [pid]
    while waiting:
        children = parents.get(waiting.pop(), [])
        found += children
        waiting += children
    return found


def cpu_below(pid: int) -> float:
    """CPU seconds of a process and its descendants, with those that have ended and were waited for."""
    total = 0
    for process in [pid, *below(pid)]:
        try:
            total += sum(map(int, _fields(Path(f"/proc/{process}/stat"))[11:15]))
        except OSError:
            continue
    return total / TICKS


def _fields(path: Path) -> list[str]:
    """The fields of a process behind its name: state, parent, and so on."""
    return path.read_text().rpartition(")")[2].split()


def peak(pid: int) -> int:
    """The most memory that a process had, in bytes."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("VmHWM")), 0)


def events_of(folder: Path, description: str) -> list[dict[str, Any]]:
    """The ends of stages and tasks of jobs with a description, from Spark's event log."""
    events = []
    for path in sorted(folder.rglob("events_*")):
        events += [json.loads(line) for line in path.read_text().splitlines()]
    submitted = (event for event in events if event["Event"] == "SparkListenerStageSubmitted")
    own = {
        event["Stage Info"]["Stage ID"]
        for event in submitted
        if event.get("Properties", {}).get("spark.job.description") == description
    }
    chosen = []
    for event in events:
        stage = event.get("Stage ID") if event["Event"] == "SparkListenerTaskEnd" else None
        if event["Event"] == "SparkListenerStageCompleted":
            stage = event["Stage Info"]["Stage ID"]
        if stage in own:
            chosen.append(event)
    return chosen


def _tasks(events: Iterable[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    return (event for event in events if event["Event"] == "SparkListenerTaskEnd" and event.get("Task Metrics"))


def shuffled(events: list[dict[str, Any]]) -> int:
    """Bytes that tasks wrote for others to read."""
    return sum(task["Task Metrics"]["Shuffle Write Metrics"]["Shuffle Bytes Written"] for task in _tasks(events))


def stages(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each stage that ran: its tasks, its seconds, the longest task, and what it moved."""
    found = []
    for event in events:
        if event["Event"] != "SparkListenerStageCompleted":
            continue
        info = event["Stage Info"]
        own = [task for task in _tasks(events) if task["Stage ID"] == info["Stage ID"]]
        times = [task["Task Metrics"]["Executor Run Time"] / 1000 for task in own]
        if not own:
            continue
        found.append(
            {
                "stage": info["Stage ID"],
                "name": info["Stage Name"].split(" at ")[0],
                "tasks": len(own),
                "seconds": (info["Completion Time"] - info["Submission Time"]) / 1000,
                "work": sum(times),
                "longest": max(times),
                "shuffled": shuffled(own),
            }
        )
    return found
