"""How the house stands: files, lines, files with one importer, names of classes, and the way of a release.

``python -m scripts.house`` prints the figures, and with ``--list`` what is behind them (``tests/test_house.py``).
"""

from __future__ import annotations

import ast
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src"


def modules() -> dict[str, Path]:
    """Every module of the package, by its name."""
    files = sorted((SOURCE / "keepsum").rglob("*.py"))
    return {".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"): path for path in files}


def importers(files: dict[str, Path]) -> dict[str, set[str]]:
    """The modules that import a module: anywhere in them, in functions and for types too."""
    found: dict[str, set[str]] = defaultdict(set)
    for module, path in files.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    inner = f"{node.module}.{alias.name}"
                    found[inner if inner in files else node.module].add(module)
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    found[alias.name].add(module)
    return found


def with_one_importer(files: dict[str, Path]) -> list[str]:
    """Modules that one other module imports, in the same folder: each needs a reason to be a file."""
    found = importers(files)
    alone = {module: next(iter(found[module])) for module in files if len(found[module]) == 1}
    return [module for module, user in alone.items() if user.rpartition(".")[0] == module.rpartition(".")[0]]


def repeated_classes(files: dict[str, Path]) -> dict[str, list[str]]:
    """Names that more than one class has, with their modules."""
    classes: dict[str, list[str]] = defaultdict(list)
    for module, path in files.items():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                classes[node.name].append(module)
    return {name: homes for name, homes in sorted(classes.items()) if len(homes) > 1}


def lines(files: dict[str, Path]) -> int:
    """The lines of all modules together."""
    return sum(path.read_text(encoding="utf-8").count("\n") for path in files.values())


def files_run(work: Callable[[], object]) -> list[str]:
    """The files of the package in which a function is called while ``work`` runs; imports do not count."""
    found: set[str] = set()

    def seen(frame: object, _event: str, _argument: object) -> None:
        code = frame.f_code  # type: ignore[attr-defined]
        if code.co_name != "<module>" and code.co_filename.startswith(str(SOURCE)):
            found.add(str(Path(code.co_filename).relative_to(SOURCE)))

    sys.setprofile(seen)
    try:
        work()
    finally:
        sys.setprofile(None)
    return sorted(found)


def files_of_a_release() -> list[str]:
    """The files that a small release with both margins kept, and its saving, run through."""
    import keepsum as ks

    axes = {"county": ["Alpha", "Beta", "Gamma"], "sex": ["f", "m"]}
    table = ks.Table.from_array([[15, 1], [20, 10], [3, 10]], axes=axes)

    def release(folder: str) -> None:
        ks.release(table, keep=["county", "sex"], mechanism=ks.Laplace(epsilon=1)).save(f"{folder}/")

    with tempfile.TemporaryDirectory() as folder:
        release(f"{folder}/first")  # what is loaded once is no part of the way
        return files_run(lambda: release(f"{folder}/second"))


def main() -> None:
    """Print the figures, and with ``--list`` what is behind them."""
    files = modules()
    print(f"Python files: {len(files)}")
    print(f"lines: {lines(files):,}")
    classes = [f"{name}: {', '.join(homes)}" for name, homes in repeated_classes(files).items()]
    for name, found in {
        "files with one importer, in their folder": with_one_importer(files),
        "names of several classes": classes,
        "files that a release with save runs through": files_of_a_release(),
    }.items():
        print(f"{name}: {len(found)}")
        if "--list" in sys.argv:
            print(*(f"  {one}" for one in found), sep="\n")


if __name__ == "__main__":
    main()
