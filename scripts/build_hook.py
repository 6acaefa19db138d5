"""Compile the kernels when the package is built or installed: a hook of hatchling."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class KernelsHook(BuildHookInterface):
    """Called for wheels and for editable installs, which are wheels, too."""

    def dependencies(self) -> list[str]:
        """A compiler from the package index where there is none."""
        build = self._build()
        return [] if build.compiler() else [build.ZIG]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile what is missing or stale; the wheel is for this platform and for every Python."""
        build = self._build()
        libraries = build.build()
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{build.platform_tag(libraries)}"
        build_data["artifacts"] += [str(path.relative_to(self.root)) for path in libraries]

    def _build(self) -> ModuleType:
        path = Path(self.root) / "src" / "keepsum" / "sampling" / "native" / "build.py"
        spec = importlib.util.spec_from_file_location("keepsum_build", path)
        if spec is None or spec.loader is None:
            raise ImportError(f"{path} cannot be loaded")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
