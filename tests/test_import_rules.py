"""The folder list is the data's journey: a folder imports only what stands above it in this list, itself included."""

import ast
from pathlib import Path

import pytest

import keepsum
import keepsum_shell

ROOT, SHELL = Path(keepsum.__file__).parent, Path(keepsum_shell.__file__).parent
LIST = """
    keepsum_shell.stopping _text _saying errors _extras _arguments _threads _arrays _memory _signals _work _cache
    _progress _copying _holding
    lattice sampling.native sampling.core sampling.l1 sampling.gaussian sampling.general sampling
    tables privacy sources convergence planning accuracy projection accounting releasing ledger report facade research
    specs spark desk __init__ cli keepsum_shell __main__
"""
HOUSE = LIST.split()


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_of(path): path for folder in (ROOT, SHELL) for path in sorted(folder.rglob("*.py"))}


def room(module: str) -> str:
    """The folder of a module: the longest name in the list that it starts with."""
    inner = "__init__" if module == "keepsum" else module.removeprefix("keepsum.")
    return max((name for name in HOUSE if f"{inner}.".startswith(f"{name}.")), key=len)


def imports(path: Path) -> set[str]:
    """The modules of ours that a file imports, inside functions and for types alike."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    assert not any(isinstance(node, ast.ImportFrom) and node.level for node in nodes), f"{path} imports relatively"
    inner = [(node.module, alias.name) for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names]
    names = [f"{module}.{name}" if f"{module}.{name}" in MODULES else f"{module}" for module, name in inner]
    names += [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    return {name for name in names if name.split(".")[0] in ("keepsum", "keepsum_shell")}


def allowed(importer: str, imported: str) -> bool:
    return HOUSE.index(room(imported)) <= HOUSE.index(room(importer))


@pytest.mark.parametrize("module", MODULES)
def test_imports_only_look_up_the_list(module):
    for imported in imports(MODULES[module]):
        assert allowed(module, imported), f"{module} must not import {imported}"


def test_the_rule_can_fail():
    assert not allowed("keepsum.lattice.matrix", "keepsum.tables.domain")
    assert not allowed("keepsum.sampling.core.rng", "keepsum.sampling.l1.rejection")
    assert not allowed("keepsum.sampling.l1.rejection", "keepsum.sampling.gaussian.sums")
    assert not allowed("keepsum.tables.table", "keepsum.sources.reading")
    assert not allowed("keepsum.releasing.release", "keepsum.cli.app")
    assert not allowed("keepsum.planning.plan", "keepsum")
    assert not allowed("keepsum.releasing.release", "keepsum.ledger.ledger")


def circle(arrows: dict[str, set[str]]) -> list[str]:
    """What is left when modules that import nothing that is left are taken away: the modules in or above a circle."""
    left = dict(arrows)
    while free := [name for name, targets in left.items() if not targets & left.keys()]:
        for name in free:
            del left[name]
    return sorted(left)


def test_no_two_modules_import_each_other():
    arrows = {module: imports(path) - {module} for module, path in MODULES.items()}
    assert not circle(arrows)
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == ["a", "b", "c"]


def test_no_float_in_the_lattice():
    """No float literal and no call of float(): integers only."""
    for path in (ROOT / "lattice").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            assert not (isinstance(node, ast.Constant) and isinstance(node.value, float)), path
            assert not (isinstance(node, ast.Name) and node.id == "float"), path
            assert not (isinstance(node, ast.Div)), path
