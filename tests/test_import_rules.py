"""Data flows one way: declare, compile, sample, release, account. A module imports only what stands before it."""

import ast
from pathlib import Path

import pytest

import keepsum

ROOT = Path(keepsum.__file__).parent

# The house from the ground up. A module may import its own layer's package and every layer before it.
LAYERS = [
    ["showing"],
    ["errors"],
    ["arguments"],
    ["memory", "caching", "holding", "unpacking"],
    ["lattice"],
    ["sampling"],
    [
        "axes",
        "domain",
        "labels",
        "counting",
        "invariants",
        "origins",
        "decoding",
        "table",
        "reading",
        "writing",
        "declaring",
        "calibration",
        "mechanisms",
        "guarantees",
    ],
    ["mcmc"],
    ["geometry", "grouping", "changes"],
    ["distances"],
    ["choosing", "choosing_gaussian", "choosing_general"],
    ["planning", "explaining", "comparing", "noise", "accuracy", "bounds", "tails", "certifying", "drawing"],
    ["baselines"],
    ["certificate"],
    ["recording", "locking"],
    ["replacing"],
    ["saving"],
    ["stating"],
    ["signing"],
    ["releasing"],
    ["verifying"],
    ["__init__"],
    ["cli"],
]
# Who may import whom inside the layer of what the user declares.
DECLARE = {
    "axes": set(),
    "domain": {"axes"},
    "labels": {"axes"},
    "counting": {"axes", "domain", "labels"},
    "invariants": {"axes", "domain"},
    "origins": set(),
    "decoding": {"counting", "origins"},
    "table": {"axes", "domain", "labels", "counting", "decoding", "invariants", "origins"},
    "reading": {"axes", "domain", "counting", "decoding", "origins", "table"},
    "writing": {"origins", "table"},
    "declaring": {"axes", "labels", "counting", "domain", "invariants", "reading", "table"},
    "calibration": set(),
    "mechanisms": {"calibration"},
    "guarantees": {"mechanisms"},
}
# Views of the plan, and what they look at beside it.
VIEWS = {
    "choosing_gaussian": {"choosing", "choosing_general"},
    "choosing_general": {"choosing"},
    "certifying": {"planning"},
    "drawing": {"certifying"},
    "comparing": {"planning"},
    "explaining": {"planning", "comparing"},
    "tails": {"planning"},
    "noise": {"planning"},
    "accuracy": {"planning", "noise"},
    "bounds": {"planning"},
}
# Imports inside a function that look upwards, each with its reason.
EXCEPTIONS = {
    ("planning", "explaining"): "plan.explain() is a thin method over a view of the plan",
    ("choosing", "choosing_gaussian"): "one choice of a sampler, in three files",
    ("choosing", "choosing_general"): "one choice of a sampler, in three files",
    ("planning", "certifying"): "plan.certify() is a thin method over a view of the plan",
    ("certifying", "drawing"): "certification.plot() is a thin method over a view of it",
    ("planning", "tails"): "plan.tail_bound() is a thin method over a view of the plan",
    ("planning", "noise"): "plan.noise is a thin method over a view of the plan",
    ("planning", "accuracy"): "plan.accuracy() is a thin method over a view of the plan",
    ("planning", "releasing"): "plan.release() is a thin method over the facade",
    ("certificate", "recording"): "certificate.plan() is a thin method that reads the certificate again",
}


def modules() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def house_name(path: Path) -> str:
    first = path.relative_to(ROOT).parts[0]
    return first.removesuffix(".py")


def imports(path: Path) -> list[tuple[str, bool]]:
    """Each module of ours that a file imports, and whether only type checkers see it."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    checking = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and getattr(block.test, "id", None) == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    found = []
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path.name} imports relatively"
            names = [node.module]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        found += [(n.split(".")[1], id(node) in checking) for n in names if n.startswith("keepsum.")]
    return found


def layer(name: str) -> int:
    return next(i for i, names in enumerate(LAYERS) if name in names)


def allowed(importer: str, imported: str) -> bool:
    if importer == imported or (importer, imported) in EXCEPTIONS:
        return True
    if importer in DECLARE and imported in DECLARE:
        return imported in DECLARE[importer]
    return layer(imported) < layer(importer) or (importer in VIEWS and imported in VIEWS[importer])


def test_every_module_has_its_place():
    assert {house_name(path) for path in modules()} == {name for names in LAYERS for name in names}


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_only_look_down(path):
    for imported, only_types in imports(path):
        assert only_types or allowed(house_name(path), imported), f"{house_name(path)} must not import {imported}"


def test_the_rule_can_fail():
    assert not allowed("lattice", "domain")
    assert not allowed("lattice", "sampling")
    assert not allowed("sampling", "domain")
    assert not allowed("domain", "table")
    assert not allowed("sampling", "mcmc")
    assert not allowed("mcmc", "planning")
    assert not allowed("table", "planning")
    assert not allowed("planning", "certificate")
    assert not allowed("releasing", "verifying")
    assert not allowed("releasing", "cli")
    assert not allowed("planning", "baselines")


def test_no_float_in_the_lattice():
    """No float literal and no call of float(): integers only."""
    for path in (ROOT / "lattice").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            assert not (isinstance(node, ast.Constant) and isinstance(node.value, float)), path
            assert not (isinstance(node, ast.Name) and node.id == "float"), path
            assert not (isinstance(node, ast.Div)), path
