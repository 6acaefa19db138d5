"""A module hides a decision: few deep files, each name of a class once, and every room says what it is for."""

import ast

from scripts.house import files_run, importers, modules, repeated_classes, with_one_importer

FILES = modules()


def test_files_are_few_and_deep():
    assert len(FILES) <= 300
    assert len(with_one_importer(FILES)) <= 25


def test_no_two_classes_have_one_name():
    assert repeated_classes(FILES) == {}


def test_every_room_says_what_it_is_for_and_which_names_are_its_face():
    """At least three lines, with a name of the room in double backticks."""
    for module, path in FILES.items():
        if path.name != "__init__.py" or module in ("keepsum", "keepsum.sampling", "keepsum.sampling.native"):
            continue
        said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        rows = [row for row in said.splitlines() if row.strip()]
        assert len(rows) >= 2 or module in ("keepsum.cli.commands", "keepsum.research", "keepsum.research.mcmc"), module
        assert "``" in said or module == "keepsum.research.mcmc", module


def test_the_counts_can_fail(tmp_path):
    """Two classes of one name, and a file that only its neighbour imports, are seen."""
    (tmp_path / "a.py").write_text("class One:\n    pass\n", encoding="utf-8")
    (tmp_path / "b.py").write_text("from p.a import One as Other\n\n\nclass One(Other):\n    pass\n", encoding="utf-8")
    files = {"p.a": tmp_path / "a.py", "p.b": tmp_path / "b.py"}
    assert repeated_classes(files) == {"One": ["p.a", "p.b"]}
    assert with_one_importer(files) == ["p.a"]
    assert importers(files)["p.a"] == {"p.b"}


def test_the_way_of_a_call_is_seen():
    import keepsum as ks

    assert "keepsum/privacy/laplace.py" in files_run(lambda: ks.Laplace(epsilon=1))
    assert files_run(lambda: None) == []
