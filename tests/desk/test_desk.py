"""The journey without a browser: drafts, errors at their fields, ways out, and releases that happen once."""

from __future__ import annotations

import gzip
import io
import itertools
import re
import zipfile

import pytest

import keepsum as ks
from desk.asking import CHILDREN, held_draw, opened, release, released_files
from keepsum.desk.desk import Desk
from keepsum.desk.finished import Finished
from support import mostly_audit


@mostly_audit("name", ["children", "people"])
def test_an_example_is_released_and_verifies(name, tmp_path):
    browser, desk = opened()
    page = browser.form("/example", {"name": name})
    assert "trouble" not in page
    assert "Released" in release(browser)
    files = released_files(browser)
    for file, data in files.items():
        (tmp_path / file).write_bytes(data)
    assert ks.verify(tmp_path)
    assert {"table.csv", "certificate.json", "report.html", "margins.csv", "registry.json"} <= set(files)
    assert desk.finished.is_taken


def test_the_example_is_the_table_of_the_demo():
    browser, desk = opened()
    browser.form("/example", {"name": "children"})
    assert desk.draft.upload.data == CHILDREN


@pytest.mark.audit
def test_a_bomb_is_refused_in_a_sentence(monkeypatch):
    """A megabyte that unpacks to a gigabyte; memory is what a small machine has."""
    monkeypatch.setattr("keepsum._memory.available", lambda: 10**9)
    browser, _ = opened()
    bomb = gzip.compress(bytes(2 * 10**8), mtime=0)
    browser.upload("t.csv.gz", bomb)
    assert "must fit in memory" in browser.page("/table")
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", bytes(2 * 10**8))
    browser.upload("t.xlsx", sink.getvalue())
    page = browser.page("/table")
    assert "trouble" in page
    assert "should not have" not in page


@pytest.mark.audit
def test_the_end_waits_for_a_release_that_is_being_drawn(monkeypatch, tmp_path):
    import threading

    ledger = ks.Ledger.create(tmp_path / "ledger.db", budget=10)
    browser, desk = opened(ledger=str(tmp_path / "ledger.db"))
    browser.form("/example", {"name": "children"})
    browser.page("/release")
    gate, begun = held_draw(monkeypatch)
    browser.post("/release", {"version": str(desk.version)})
    assert begun.wait()
    desk.stop()  # has no effect on it
    ending = threading.Thread(target=desk.close)
    ending.start()
    assert ending.is_alive()
    gate.set()
    ending.join()
    assert desk.finished is not None
    assert [spend.outcome for spend in ledger.spends()] != []
    assert len(ledger.spends()) == 1


def test_a_release_that_fails_after_it_was_charged_says_so(monkeypatch, tmp_path):
    from keepsum.releasing.release import Prepared

    ledger = ks.Ledger.create(tmp_path / "ledger.db", budget=10)
    browser, _ = opened(ledger=str(tmp_path / "ledger.db"))
    browser.form("/example", {"name": "children"})

    def fail(*_):
        raise RuntimeError("count 12345")

    browser.page("/release")
    monkeypatch.setattr(Prepared, "draw", fail)
    page = browser.form("/release", {})
    assert "The release failed: " in page
    assert "stays charged" in page
    assert "12345" not in page
    assert len(ledger.spends()) == 1


def test_what_a_step_asks_for_is_no_error_yet():
    browser, _ = opened()
    browser.upload("t.csv", CHILDREN)
    page = browser.page("/keep")
    assert "Tick at least one total." in page
    assert "--keep-file" not in page
    assert "No total is ticked yet." in browser.page("/release")


def test_two_tabs_that_ask_at_once_both_get_their_pages():
    import threading

    browser, _ = opened()
    browser.form("/example", {"name": "children"})
    pages = {}
    tabs = [
        threading.Thread(target=lambda step=step: pages.__setitem__(step, browser.page(f"/{step}")))
        for step in ("keep", "privacy", "preview", "release")
    ]
    for tab in tabs:
        tab.start()
    for tab in tabs:
        tab.join()
    assert 'class="total kept"' in pages["keep"]
    assert "±" in pages["privacy"]
    assert "The distribution of the noise" in pages["preview"]
    assert 'id="go"' in pages["release"]


@pytest.mark.audit
def test_a_million_cells_are_shown_page_by_page():
    browser, _ = opened()
    rows = [f"s{c // 25},c{c},a{a},{s},{(c * 7 + a * 3) % 90}" for c in range(2500) for a in range(200) for s in "fm"]
    browser.upload("big.csv", "\n".join(["state,county,age,sex,n", *rows]).encode())
    browser.page("/table")
    assert "1,000,000 cells" in browser.form("/fix", {"number": "0"})
    page = browser.form("/keep", {"margin": "0"})
    assert len(page) < 200_000
    assert "Rows 1 to 100 of 500,000" in page
    assert "Rows 399,901 to 400,000 of 500,000" in browser.page("/keep?page=4000")
    page = release(browser)
    assert "Released" in page
    assert len(page) < 200_000


@pytest.mark.audit
def test_records_are_counted_by_what_is_declared():
    browser, _ = opened()
    people = [f"p{k % 40},{'fm'[k % 2]},{k % 90}" for k in range(200)]
    browser.upload("people.csv", "\n".join(["id,sex,age", *people]).encode())
    roles = {"rows": "records", "role-0": "unit", "role-1": "axis", "role-2": "axis", "most": "2"}
    page = browser.form("/table", roles)
    assert "trouble" in page
    both = {"axis-0": "sex", "labels-0": "f\nm", "axis-1": "age", "labels-1": "", "bins-1": "0, 18, 65,"}
    page = browser.form("/categories", both)
    assert "6 cells" in page
    assert "trouble" not in page
    browser.form("/keep", {"margin": "0"})
    assert "Released" in release(browser)
    certificate = ks.Certificate.from_json(released_files(browser)["certificate.json"])
    assert (certificate.records.unit, certificate.records.max_rows_per_unit) == ("id", 2)
    page = browser.form("/categories", {"axis-0": "sex", "labels-0": "f\nf"})
    assert "must" in re.findall('class="said">(.*?)<', page)[0]


def test_without_a_bound_per_person_epsilon_is_the_loss_of_one_record():
    browser, desk = opened()
    browser.form("/example", {"name": "people"})
    browser.form("/table", {"rows": "records", "role-0": "out", "role-1": "axis", "role-2": "axis", "role-3": "axis"})
    page = browser.page("/privacy")
    assert "Epsilon, the privacy loss of one record<" in page
    assert "for one record: epsilon 1" in page
    assert "one record, not one person: epsilon is the loss of one record" in browser.page("/release")
    assert "one record, not one person" in browser.page("/preview")
    browser.form("/example", {"name": "people"})
    assert "Epsilon, the privacy loss of one person<" in browser.page("/privacy")
    assert desk.draft.spec.mechanism.per_unit is None


def test_nothing_need_be_kept():
    """A person is then at distance 2, and that is what epsilon is for; one more or fewer is a detail."""
    browser, desk = opened()
    browser.form("/example", {"name": "children"})
    page = browser.form("/keep", {"nothing": "1", "margin": ["0"], "total": "1"}, "keep")
    assert (desk.draft.spec.keep.nothing, desk.draft.spec.keep.margins, desk.draft.spec.keep.total) == (
        True,
        None,
        None,
    )
    assert 'name="nothing" value="1" id="nothing" checked' in page
    assert "trouble" not in page
    assert "for one person: epsilon 1" in browser.page("/privacy")
    assert "One person more or fewer in a cell under no total: epsilon 0.5" in browser.page("/preview")
    assert "--keep-nothing --epsilon 1" in browser.page("/release")
    assert "Released" in release(browser)
    assert released_files(browser)["certificate.json"]
    browser.form("/keep", {"nothing": "1", "total": "1"}, "keep")  # a total is ticked, too
    assert (desk.draft.spec.keep.nothing, desk.draft.spec.keep.total) == (None, True)


def test_the_loss_per_unit_of_distance_is_under_details():
    browser, desk = opened()
    browser.form("/example", {"name": "children"})
    page = browser.page("/privacy")
    assert "<details><summary>Details: whose loss epsilon is</summary>" in page
    assert "Epsilon, the privacy loss of one person<" in page
    page = browser.form("/privacy", {"epsilon": "0.25", "reading": "unit", "kind": "laplace"})
    assert desk.draft.spec.mechanism.per_unit is True
    assert "Epsilon, the privacy loss per unit of distance<" in page
    assert "<details open><summary>Details: whose loss epsilon is</summary>" in page
    assert "for one person: epsilon 1" in page
    copies = browser.page("/release")
    for same in ("--per-unit", "ks.Laplace.per_unit(", "per_unit = true"):
        assert same in copies
    preview = browser.page("/preview")
    first, _, details = preview.partition("<summary>Details: formulas")
    assert "per unit of l1 distance" not in first
    assert "per unit of l1 distance" in details


@pytest.mark.audit
def test_pinned_cells_are_accepted_or_kept_less():
    browser, desk = opened()
    browser.upload("t.csv", b"place,sex,n\na,f,3\na,m,4\nb,f,9\n")
    browser.form(
        "/table", {"rows": "counts", "count": "n", "role-0": "axis", "role-1": "within:place", "role-2": "out"}
    )
    page = browser.form("/keep", {"margin": "0"})
    browser.page("/release")
    page = browser.page("/keep")
    assert "The kept totals pin 1 cell" in page
    assert "Publish this cell without noise" in page
    browser.form("/fix", {"number": "0"}, "keep")
    assert desk.draft.spec.output.accept_pinned == ["all"]
    assert "Released" in release(browser)


def test_an_error_is_at_its_field():
    browser, _ = opened()
    browser.form("/example", {"name": "children"})
    page = browser.form("/privacy", {"epsilon": "-1", "reading": "person", "kind": "laplace"})
    assert 'id="epsilon" name="epsilon" value="-1" autocomplete="off" aria-invalid="true"' in page
    assert 'id="problem-epsilon">Epsilon must be' in page
    browser.upload("t.csv", b"place,sex,a,b\nx,f,1,2\n")
    page = browser.page("/table")
    assert "Which column has the counts?" in page
    assert 'class="trouble"' not in page
    browser.upload("t.csv", b"place,sex,n\nx,f,1\nx,m,10.5\n")
    assert 'id="problem-count">Count in line 3, column &#39;n&#39;, must be a whole number' in browser.page("/table")


def test_what_the_shell_refuses_is_refused_in_the_same_words(tmp_path):
    browser, desk = opened()
    for name, data in {"a.csv": b"", "b.csv": b"a,n\nx,-3\n", "c.xlsx": b"PK\3\4x", "d.csv": b"\xff\xfea,n"}.items():
        browser.upload(name, data or b"\n")
        desk.look("table")
        said = desk.peek().problem
        (tmp_path / name).write_bytes(data or b"\n")
        with pytest.raises(ks.KeepsumError) as error:
            ks.read_table(tmp_path / name, **({"count": "n"} if said.stage == "table" else {}))
        assert said.message == str(error.value) or said.stage == "columns"
        assert "-3" not in said.message


def test_a_change_from_another_tab_is_told():
    browser, desk = opened()
    browser.form("/example", {"name": "children"})
    version = desk.version
    browser.form("/privacy", {"epsilon": "2", "reading": "person", "kind": "laplace"})
    answer = browser.post("/privacy", {"version": version, "epsilon": "3", "reading": "person", "kind": "laplace"})
    assert answer.status == 303
    place = answer.headers["location"].removeprefix(browser.guard.base)
    assert "out of date" not in browser.page("/privacy")  # in another tab
    assert "out of date" in browser.page(place)
    assert "out of date" not in browser.page(place)
    assert desk.draft.spec.mechanism.epsilon == "2"


def test_a_double_click_releases_once(tmp_path):
    ledger = ks.Ledger.create(tmp_path / "ledger.db", budget=10)
    browser, desk = opened(ledger=str(tmp_path / "ledger.db"))
    browser.form("/example", {"name": "children"})
    page = browser.page("/release")
    version = re.search(r'data-version="(\d+)"', page)[1]
    for _ in range(3):
        browser.post("/release", {"version": version})
    browser.page("/release")
    browser.post("/release", {"version": version})
    assert "Released" in browser.page("/release")
    assert len(ledger.spends()) == 1
    first = desk.finished
    page = browser.form("/again", {})
    assert "Release the table?" in page
    assert desk.finished is first
    browser.form("/release", {})
    assert len(ledger.spends()) == 2
    assert "epsilon 2 of 10 per person" in browser.page("/privacy")


def test_a_budget_that_is_spent_is_told_before_the_release(tmp_path):
    ks.Ledger.create(tmp_path / "ledger.db", budget="0.1")
    browser, _ = opened(ledger=str(tmp_path / "ledger.db"))
    browser.form("/example", {"name": "children"})
    page = browser.page("/release")
    assert "must allow for the release" in page
    assert 'id="go"' not in page
    assert browser.post("/release", {"version": "2"}).status == 303
    assert "Released" not in browser.page("/release")


def test_cells_are_kept_as_a_set():
    browser, desk = opened()
    browser.form("/example", {"name": "children"})
    assert "must have a name" in browser.form("/set", {"cells": "0,5", "name": ""})
    page = browser.form("/set", {"cells": "0,5,5", "name": "corner"})
    assert "corner" in page
    assert desk.draft.spec.keep.subset[0].cells == [
        {"county": "Alpha", "education": "Low"}, {"county": "Beta", "education": "Medium"},
    ]  # fmt: skip
    browser.form("/unset", {"number": "0"})
    assert desk.draft.spec.keep.subset is None


def test_no_confidential_count_is_on_a_page_before_the_release():
    browser, _ = opened()
    rows = "\n".join(f"{a},{b},{70_001 + 13 * k}" for k, (a, b) in enumerate((a, b) for a in "wxyz" for b in "pqrs"))
    browser.upload("t.csv", f"a,b,n\n{rows}\n".encode())
    for step in ("table", "keep", "privacy", "preview", "release"):
        page = browser.page(f"/{step}")
        assert not re.search(r"\b70[,.]?\d{3}\b", page), step  # whole numbers: random marks have figures, too


@pytest.mark.audit
def test_a_release_is_saved_only_where_the_user_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    browser, _ = opened()
    browser.form("/example", {"name": "children"})
    release(browser)
    assert list(tmp_path.iterdir()) == []
    assert "must have a name" in browser.form("/save", {"folder": ""})
    assert "is written" in browser.form("/save", {"folder": "out"})
    assert ks.verify("out/")
    assert (tmp_path / "out" / "report.html").is_file()
    assert "already exists. Choose another name, or replace it in the shell.</p>" in browser.form(
        "/save", {"folder": "out"}
    )


@pytest.mark.parametrize(
    ("folder", "words"),
    [
        ("a\0b", "The folder must be a path, got text with a character that no path can contain."),
        ("~nobody-of-this-name/out", "Output must be in an existing folder"),
        ("loop/out", "Output must be in an existing folder"),
        ("x" * 300, "must be "),
    ],
)
def test_a_folder_that_cannot_be_is_a_sentence_on_the_page(tmp_path, monkeypatch, folder, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop").symlink_to("loop")
    browser, _ = opened()
    browser.form("/example", {"name": "children"})
    table = ks.Table.from_array([5, 6], axes={"sex": ["f", "m"]})
    drawn = ks.release(table, keep=[[]], mechanism=ks.Laplace.per_unit(epsilon=1))._record
    done = Finished(drawn, None, None, None, 0, files={"table.csv": b""})
    monkeypatch.setattr(Desk, "finished", property(lambda _: done))
    page = browser.form("/save", {"folder": folder})
    assert words in page
    assert [path.name for path in tmp_path.iterdir()] == ["loop"]


def test_a_file_is_counted_while_it_comes():
    browser, desk = opened(limit=1000)
    for headers, body in (({"content_length": "3000000000"}, b"a"), ({}, [b"x" * 400] * 20)):
        answer = browser.upload("a.csv", body, **headers)
        assert answer.status == 413
        assert "at most 1,000 bytes" in answer.text
        assert browser.received <= 4 + 10  # four times the limit is thrown away, and the rest is not even taken
    assert desk.draft is None
    assert browser.upload("a.csv", b"").status == 400


def test_names_of_files_are_not_paths():
    browser, desk = opened()
    browser.upload("..%2F..%2Fetc%2Fpasswd.csv", b"a,n\nx,1\ny,2\n")
    assert desk.draft.upload.name == "passwd.csv"


def test_hostile_text_stays_text():
    browser, _ = opened()
    evil = "<script>alert(1)</script>"
    rows = [f'"{a}","{b}",{k * 3 + 5}' for k, (a, b) in enumerate((a, b) for a in (evil, "x'&") for b in "pq")]
    browser.upload(f"{evil}.csv", "\n".join([f'"{evil}",b,n', *rows]).encode())
    browser.form("/table", {"rows": "counts", "count": "n"})
    browser.form("/keep", {"margin": "0"})
    for step in ("table", "keep", "privacy", "preview", "release"):
        assert evil not in browser.page(f"/{step}")
    assert evil.replace("<", "&lt;").replace(">", "&gt;") in browser.page("/keep")


def test_a_hundred_thousand_columns_are_refused_in_a_sentence():
    browser, _ = opened()
    header = ",".join(f"c{k}" for k in range(10**5))
    browser.upload("t.csv", f"{header}\n{','.join('1' * 10**5)}\n".encode())
    page = browser.page("/table")
    assert len(page) < 10**6
    assert "trouble" in page


def test_work_that_was_stopped_goes_on_when_asked(monkeypatch):
    import threading

    from keepsum.desk import deriving

    browser, desk = opened()
    gate, begun, real = threading.Event(), threading.Event(), deriving.MAKERS["table"]

    def slow(draft, made, job, ledger):
        begun.set()
        while not gate.is_set():
            job.done(0.5)
        return real(draft, made, job, ledger)

    monkeypatch.setitem(deriving.MAKERS, "table", slow)
    monkeypatch.setattr("keepsum.desk.desk.PATIENCE", 0.01)
    browser.post("/example", {"name": "children"})
    page = browser.get("/table").text
    assert 'id="progress"' in page
    assert begun.wait()
    assert '"done":false' in browser.get("/progress").text
    version = desk.version
    browser.post("/stop", {"version": version, "step": "table"})
    assert "was stopped" in browser.page("/table")
    gate.set()
    browser.post("/resume", {"version": version, "step": "table"})
    assert "16 cells" in browser.page("/table")


def test_before_the_release_counts_decide_nothing_but_which_cells_are_marked():
    """Totals that differ, and with them bounds; the noise is so wide that every cell is bounded."""
    found = []
    for counts in ((5, 12, 7, 30, 11, 13), (6, 812, 99, 4, 0, 1313)):
        browser, _ = opened()
        rows = "\n".join(f"{a},{b},{n}" for (a, b), n in zip(itertools.product("ABC", "xy"), counts, strict=True))
        browser.upload("t.csv", f"county,edu,n\n{rows}\n".encode())
        browser.form("/keep", {"margin": ["0", "1"]})
        browser.form("/privacy", {"epsilon": "0.001", "kind": "laplace", "reading": "person"})
        secrets = {browser.guard.base: "", browser.guard.csrf: ""}
        pages = [browser.page(f"/{step}") for step in ("table", "keep", "privacy", "release")]
        for secret, nothing in secrets.items():
            pages = [page.replace(secret, nothing) for page in pages]
        found.append(pages)
    assert found[0] == found[1]
    assert found[0][1].count('class="cell bounded"') == 6
    assert "which only you see until the release" in found[0][1]
    assert not re.search(r"from \d+ to|\d–\d", found[0][1])
    assert "bytes)" not in found[0][0]
