"""The machine and the versions that figures belong to."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from importlib.metadata import version
from pathlib import Path

LIBRARIES = ("numpy", "scipy", "python-flint", "cryptography", "opendp", "sympy")
REPO = Path(__file__).parents[1]


def describe() -> dict[str, str]:
    """CPU, cores, memory, system, versions and commit."""
    return {
        "CPU": cpu_model(),
        "cores": str(os.cpu_count()),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GB",
        "system": f"{platform.system()} {platform.release()}, {platform.machine()}",
        "Python": platform.python_version(),
        **{name: version(name) for name in LIBRARIES},
        "commit": commit(),
    }


def short_description() -> str:
    """The processor, its cores and the system, for the entry of a figure."""
    return f"{cpu_model()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}"


def cpu_model() -> str:
    """The name of the processor, as the system tells it."""
    for command, pattern in (
        (["lscpu"], r"^Model name:\s*(.+)$"),
        (["sysctl", "-n", "machdep.cpu.brand_string"], "(.+)"),
    ):
        found = re.search(pattern, _output(command), flags=re.MULTILINE)
        if found:
            return found[1].strip()
    return platform.processor() or "unknown"


def commit() -> str:
    """The commit that is measured, and whether files differ from it."""
    name = _output(["git", "-C", str(REPO), "rev-parse", "--short=10", "HEAD"]).strip()
    changed = _output(["git", "-C", str(REPO), "status", "--porcelain", "--untracked-files=no", "src"]).strip()
    return f"{name}{' with changes' if changed else ''}" if name else "unknown"


def _output(command: list[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except OSError:
        return ""
