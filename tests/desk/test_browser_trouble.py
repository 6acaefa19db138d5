"""What goes wrong, in a real browser: errors with their ways out, hostile files, a page left in the middle."""

from __future__ import annotations

import io
import zipfile

import pytest

from desk.asking import held_draw
from desk.driving import choose, go, on, settled

CHILDREN = ("Alpha", "Beta", "Gamma"), ("Low", "High")


def table(head: str, *more: str) -> bytes:
    """A file of counts of children, and more rows."""
    counts, levels = CHILDREN
    rows = [f"{a},{b},{10 * j + 7 * k + 3}" for j, a in enumerate(counts) for k, b in enumerate(levels)]
    return "\n".join([head, *rows, *more]).encode()


def test_each_error_of_a_table_has_its_way_out(show, desk):
    page = show()

    def settles(name: str, data: bytes, words: str, button: str) -> None:
        choose(page, name, data)
        page.wait_for_selector(f".trouble:has-text({words!r})")
        assert page.locator(".steps .here.stuck").count() == 1
        page.get_by_role("button", name=button).click()
        page.wait_for_selector(".trouble", state="detached")
        page.wait_for_selector(".steps .here.done")

    settles("totals.csv", table("county,level,n", "Total,Low,39", "Total,High,60"), "look like totals", "Leave")
    assert desk.draft.spec.source.drop_rows == {"county": ["Total"]}
    years = "\n".join(
        ["place,year,n", *(f"{p},{y},{k}" for k, (p, y) in enumerate((p, y) for p in "ab" for y in (1, 2)))]
    )
    settles("years.csv", years.encode(), "contains numbers", "year is an axis")
    latin = "région,n\nÎle,5\nsud,9\n".encode("windows-1252")
    settles("latin.csv", latin, "UTF-8", "Read it as windows-1252")
    choose(page, "two.csv", b"place,sex,a,b\nx,f,1,2\ny,f,3,4\nx,m,5,6\ny,m,7,8\n")
    page.wait_for_selector("#asked:has-text('Which column has the counts?')")
    page.locator("#count").select_option("a")
    page.wait_for_selector("#asked", state="detached")
    choose(page, "half.csv", b"place,n\nx,1\ny,2.5\n")
    page.wait_for_selector("#problem-count")
    assert page.locator("#count").get_attribute("aria-describedby") == "problem-count"


def test_each_error_of_the_noise_has_its_way_out(show, desk):
    page = show()
    page.locator("#example-children").click()
    go(page, "Privacy")
    page.get_by_text("Details: whose loss epsilon is").click()
    page.get_by_label("per unit of distance between two tables").check()
    page.locator("#epsilon").fill("20")
    page.locator("#epsilon").press("Enter")
    page.wait_for_selector(".trouble:has-text('little protection')")
    page.get_by_role("button", name="Make epsilon 1 the loss of one person").click()
    page.wait_for_selector(".trouble", state="detached")
    assert (desk.draft.spec.mechanism.epsilon, desk.draft.spec.mechanism.per_unit) == ("1", None)
    page.get_by_label("Gaussian", exact=False).check()
    page.wait_for_selector("#delta")
    page.locator("#delta").fill("2")
    page.locator("#delta").press("Enter")
    page.wait_for_selector("#problem-delta")
    assert page.locator("#delta").get_attribute("aria-describedby") == "problem-delta"
    page.locator("#delta").fill("1e-5")
    page.locator("#delta").press("Enter")
    page.wait_for_selector("#problem-delta", state="detached")


def test_pinned_cells_are_accepted_by_a_button(show, desk):
    page = show()
    choose(page, "t.csv", b"place,sex,n\na,f,3\na,m,4\nb,f,9\n")
    page.wait_for_selector("#meaning")
    page.locator("#role-1").select_option("within:place")
    page.wait_for_selector(".steps .here.done")
    on(page)
    page.get_by_label("place", exact=False).first.check()
    page.wait_for_selector("td.pinned")
    go(page, "Release")
    page.get_by_role("link", name="Settle it at Keep").click()
    page.get_by_role("button", name="Publish this cell without noise").click()
    page.wait_for_selector(".trouble", state="detached")
    assert desk.draft.spec.output.accept_pinned == ["all"]


@pytest.mark.parametrize("kind", ["columns", "bomb", "large"])
def test_a_hostile_file_is_refused_in_a_sentence_and_the_page_goes_on(show, desk, kind, tmp_path, monkeypatch):
    page = show()
    if kind == "columns":
        header = ",".join(f"c{k}" for k in range(10**5))
        choose(page, "t.csv", f"{header}\n{','.join('1' * 10**5)}\n".encode())
        page.wait_for_selector(".trouble")
        assert page.locator("select").count() <= 61
    elif kind == "bomb":
        monkeypatch.setattr("keepsum._memory.available", lambda: 10**9)
        sink = io.BytesIO()
        with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("xl/workbook.xml", bytes(2 * 10**8))
        choose(page, "t.xlsx", sink.getvalue())
        page.wait_for_selector(".trouble")
    else:
        path = tmp_path / "large.csv"
        with path.open("wb") as file:
            file.truncate(3 * 10**9)  # which takes no room on the disk
        page.locator("#file").set_input_files(path)
        page.wait_for_selector("#said .trouble:has-text('at most 1,000,000,000 bytes')")
        assert desk.draft is None
    assert "should not have" not in page.locator("main").inner_text()
    choose(page, "good.csv", table("county,level,n"))
    page.wait_for_selector(".steps .here.done")
    assert page.locator(".trouble").count() == 0


def test_a_page_that_is_closed_in_the_middle_of_a_release_finds_it_made(show, desk, monkeypatch):
    gate, begun = held_draw(monkeypatch)
    page = show()
    page.locator("#example-children").click()
    go(page, "Release")
    page.locator("#go").click()
    assert begun.wait()
    page.wait_for_selector("#progress")  # a page that is on its way cannot be loaded again
    page.wait_for_load_state()
    page.reload()
    assert page.locator("h1").inner_text() == "Releasing"
    assert page.locator("#progress").is_visible()
    page.close()
    gate.set()
    other = show()
    go(other, "Release")
    settled(other)
    other.wait_for_selector("#download")
    assert desk.finished.version == desk.version


def test_a_page_whose_command_has_ended_says_so(show):
    page = show()
    page.locator("#example-children").click()
    go(page, "Privacy")
    page.evaluate("window.fetch = async () => new Response('', {status: 403})")
    page.get_by_label("Gaussian", exact=False).check()
    page.wait_for_selector("#said .trouble:has-text('Start keepsum app again')")
