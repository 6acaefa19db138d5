import pytest

import keepsum as ks
from faults import Fork, kill
from keepsum.releasing.destination import Destination
from keepsum.sources import atomic as saving
from keepsum.sources.atomic import claimed

LAPLACE = ks.Laplace.per_unit(epsilon=0.25)


def test_a_file_and_its_certificate(released, tmp_path):
    path = released.save(tmp_path / "out.csv")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["out.certificate.json", "out.csv"]
    assert path == tmp_path / "out.csv"
    assert ks.verify(path)
    with pytest.raises(ks.InputError, match="already exists"):
        released.save(path)
    released.save(path, force=True)
    assert ks.verify(path)


def test_a_folder(released, tmp_path):
    released.save(f"{tmp_path}/out/")
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == ["certificate.json", "table.csv"]
    assert ks.verify(tmp_path / "out")
    with pytest.raises(ks.InputError, match="already exists"):
        released.save(f"{tmp_path}/out/")
    released.save(tmp_path / "out", force=True)
    (tmp_path / "out" / "thesis.docx").touch()
    with pytest.raises(ks.InputError, match=r"nothing but a release, but contains 'thesis.docx'"):
        released.save(tmp_path / "out", force=True)
    (tmp_path / "empty").mkdir()
    released.save(tmp_path / "empty")
    assert ks.verify(tmp_path / "empty")


@pytest.mark.parametrize("name", ["out.parquet", "out.arrow", "out.tsv"])
def test_other_kinds_of_files(released, tmp_path, name):
    assert ks.verify(released.save(tmp_path / name))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no/where.csv", "does not exist. Create it first"),
        ("out.xlsx", "must end in"),
        ("out", "a folder such as"),
        ("no/folder/", "does not exist. Create it first"),
    ],
)
def test_bad_outputs(released, tmp_path, name, message):
    with pytest.raises(ks.InputError, match=message):
        released.save(f"{tmp_path}/{name}")
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_when_the_disk_is_full(released, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("keepsum.sources.atomic.os.fsync", full)
    with pytest.raises(ks.InputError, match="No space left"):
        released.save(tmp_path / "out.csv")
    with pytest.raises(ks.InputError, match="No space left"):
        released.save(f"{tmp_path}/folder/")
    assert list(tmp_path.iterdir()) == []


def test_subsets_go_to_a_file_of_their_own(children, tmp_path):
    keep = ks.Invariants.subsets(16, [range(8), range(4, 12)])
    out = ks.plan(keep=keep, mechanism=LAPLACE).release(children)
    path = out.save(tmp_path / "out.csv")
    assert ks.verify(path)
    (tmp_path / "out.invariants.json").rename(tmp_path / "gone.json")
    failed = ks.verify(path)
    assert not failed
    assert "there is none beside it" in repr(failed)
    plain = ks.release(children, keep=["county"], mechanism=LAPLACE)
    (tmp_path / "gone.json").rename(tmp_path / "out.invariants.json")
    plain.save(path, force=True)
    assert not (tmp_path / "out.invariants.json").exists()


def test_another_tables_certificate_is_no_orphan(released, tmp_path):
    released.save(tmp_path / "out.csv")
    with pytest.raises(ks.InputError, match="already exists"):
        released.save(tmp_path / "out.parquet")
    assert ks.verify(tmp_path / "out.csv")


def test_a_lock_that_a_killed_process_left_holds_nobody_up(released, tmp_path):
    killed = Fork(lambda: released.save(tmp_path / "out.csv"), tmp_path, 8, kill).wait()
    assert killed.error is None
    assert any(path.suffix == ".lock" for path in tmp_path.iterdir())
    released.save(tmp_path / "out.csv")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["out.certificate.json", "out.csv"]


def test_the_loser_keeps_its_release(released, tmp_path):
    with claimed(tmp_path / "out.certificate.json"), pytest.raises(ks.InputError, match="still in memory"):
        released.save(tmp_path / "out.csv")
    assert list(tmp_path.iterdir()) == []
    assert ks.verify(released.save(tmp_path / "other.csv"))


def test_a_folder_that_got_something_else_meanwhile_comes_back(released, tmp_path, monkeypatch):
    place = tmp_path / "out"
    released.save(place.as_posix() + "/")
    real = saving.replace_folder

    def late(part, folder, check):
        (folder / "thesis.docx").write_text("a year of work")
        real(part, folder, check)

    monkeypatch.setattr(saving, "replace_folder", late)
    with pytest.raises(ks.InputError, match=r"but contains 'thesis.docx'"):
        released.save(place, force=True)
    assert (place / "thesis.docx").read_text() == "a year of work"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_certificate_is_not_taken_from_a_table_of_another_kind(released, tmp_path):
    released.save(tmp_path / "out.parquet")
    with pytest.raises(ks.InputError, match=r"must not replace the certificate of 'out.parquet'"):
        released.save(tmp_path / "out.csv", force=True)
    assert ks.verify(tmp_path / "out.parquet")


@pytest.mark.parametrize(
    "name",
    ["out/table.csv", "out/table.parquet", "out/table.unbiased.csv", "out/table.parquet/", "out/margins.csv",
     "link/table.csv", "r.unbiased.csv", "r.unbiased.parquet", "r.margins.csv"],
)  # fmt: skip
def test_no_release_among_the_files_of_another(released, tmp_path, name):
    """Not even with force: a table would get another's certificate, or a folder a second table."""
    released.save(f"{tmp_path}/out/")
    released.save(tmp_path / "r.csv")
    (tmp_path / "link").symlink_to("out")
    before = sorted(tmp_path.rglob("*"))
    for force in (False, True):
        with pytest.raises(ks.InputError, match="must not be among the files of another release, that of"):
            released.save(f"{tmp_path}/{name}", force=force)
    assert sorted(tmp_path.rglob("*")) == before
    assert ks.verify(tmp_path / "out")
    assert ks.verify(tmp_path / "r.csv")
    assert ks.verify(released.save(tmp_path / "out" / "other.csv"))  # as a margin may be


@pytest.mark.parametrize(
    "certificate",
    ["r.certificate.json", "out/certificate.json", "out/table.certificate.json", "plain.certificate.json",
     "r.json", "r.invariants.json", "out/registry.json"],
)  # fmt: skip
def test_no_certificate_beside_the_table_of_another(released, tmp_path, certificate):
    """A table on standard output leaves no certificate that would be taken for that of a table that is there."""
    released.save(f"{tmp_path}/out/")
    released.save(tmp_path / "r.csv")
    (tmp_path / "plain.csv").write_text("a,n\nx,3\n")
    place = Destination.standard_output(tmp_path / certificate)
    words = r"must not be (that of '(r|table|plain)\.csv' beside it|among the files of another release)"
    for force in (False, True):
        with pytest.raises(ks.InputError, match=words), place.claimed(force):
            pass
    with Destination.standard_output(tmp_path / "new.certificate.json").claimed(force=False):
        pass
    (tmp_path / "new.csv").touch()  # by the shell, for the table itself
    with Destination.standard_output(tmp_path / "new.certificate.json").claimed(force=False):
        pass


def test_symbolic_links(released, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    released.save(tmp_path / "link")
    released.save(tmp_path / "link", force=True)
    assert (tmp_path / "link").is_symlink()
    assert ks.verify(tmp_path / "real")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["link", "real"]
    (tmp_path / "gone.csv").symlink_to(tmp_path / "nowhere.csv")
    with pytest.raises(ks.InputError, match="already exists"):
        released.save(tmp_path / "gone.csv")


def test_long_names(released, tmp_path):
    """As long as a file system allows for all that is written."""
    assert ks.verify(released.save(tmp_path / f"{'a' * 230}.csv"))


@pytest.mark.parametrize("output", ["", 5, None])
def test_outputs_that_are_no_names(released, output):
    with pytest.raises(ks.InputError, match="Output must be"):
        released.save(output)
