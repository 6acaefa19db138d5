"""Who may use the page: nobody but the browser that opened the link, and only from the page itself."""

from __future__ import annotations

import asyncio

import pytest

from desk.asking import PORT, Browser, opened

PAGES = ("/", "/table", "/keep", "/privacy", "/preview", "/release", "/release.zip", "/report", "/progress", "/margin")


@pytest.mark.parametrize("path", [*PAGES, "/static/desk.css", "/static/desk.js"])
def test_without_the_cookie_there_is_nothing(path):
    browser, _ = opened()
    stranger = Browser(browser.app, browser.guard)
    answer = stranger.get(path)
    assert (answer.status, answer.body) == (403, b"")
    assert "server" not in answer.headers
    assert stranger.get(path, cookie=f"{browser.guard.cookie}=guess").status == 403
    if path != "/":
        assert browser.get(path).status in (200, 404)


def test_outside_of_the_room_there_is_nothing():
    browser, _ = opened()
    for path in ("/", "/table", "/x/table", f"{browser.guard.base}table", "/static/desk.css", "/docs", "/openapi.json"):
        assert browser.ask("GET", path).status == 403
    assert browser.get("/docs").status == browser.get("/openapi.json").status == 404


def test_a_link_works_once():
    browser, _ = opened()
    link = browser.guard.new_link().partition(browser.host)[2]
    other, third = Browser(browser.app, browser.guard), Browser(browser.app, browser.guard)
    assert other.ask("GET", link).status == 200
    assert other.get("/table").status == 200
    assert third.ask("GET", link).status == 403
    assert third.get("/table").status == 403
    assert other.ask("GET", link).status == 200  # whoever has the session needs no link
    assert browser.ask("GET", link).status == 200


@pytest.mark.parametrize("token", ["", "x", "é", "%00", "a" * 10_000])
def test_a_wrong_token_opens_nothing(token):
    browser, _ = opened()
    stranger = Browser(browser.app, browser.guard)
    assert stranger.get(f"/?token={token}").status == 403
    assert stranger.cookie == ""


def test_the_cookie_is_for_this_room_and_for_no_script():
    browser, _ = opened()
    header = browser.guard.set_cookie().decode()
    assert header.endswith(f"; Path={browser.guard.base}/; HttpOnly; SameSite=Strict")
    assert header.startswith(f"keepsum-{PORT}=")


@pytest.mark.parametrize(
    "host", ["", "evil.example", f"evil.example:{PORT}", "127.0.0.1", f"127.0.0.1.evil:{PORT}", f"localhost:{PORT}"]
)
def test_the_host_must_be_this_machine(host):
    """So that no name that leads here gives another site's page the rights of this one (DNS rebinding)."""
    browser, _ = opened()
    assert browser.get("/table", host=host).status == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": ""},
        {"origin": "null"},
        {"origin": "http://evil.example"},
        {"origin": f"http://localhost:{PORT}"},
        {"origin": f"http://127.0.0.1:{PORT + 1}"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
    ],
)
def test_a_form_must_come_from_the_page(headers):
    browser, desk = opened()
    assert browser.post("/example", {"name": "children"}, **headers).status == 403
    assert desk.draft is None
    assert browser.post("/example", {"name": "children"}, sec_fetch_site="same-origin").status == 303
    assert desk.draft is not None


@pytest.mark.parametrize("csrf", ["", "guess", "é"])
def test_a_form_must_have_its_token(csrf):
    browser, desk = opened()
    assert browser.post("/example", {"name": "children", "csrf": csrf}).status == 403
    assert browser.upload("a.csv", b"a,n\nx,1\n", x_keepsum_csrf=csrf or "x").status == 403
    assert browser.upload("a.csv", b"a,n\nx,1\n", x_keepsum_csrf="").status == 403
    assert browser.post("/example", {"name": "children"}, content_type="text/plain").status == 403
    assert browser.post("/example", {"name": "children"}, content_type="multipart/form-data").status == 403
    assert desk.draft is None


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT"])
def test_other_methods_are_refused(method):
    browser, _ = opened()
    assert browser.ask(method, f"{browser.guard.base}/table", origin=f"http://{browser.host}").status == 403


def test_another_site_may_not_even_read():
    browser, _ = opened()
    assert browser.get("/release.zip", sec_fetch_site="cross-site").status == 403
    assert browser.get("/table", sec_fetch_site="same-site").status == 403


def test_headers_given_twice_are_refused():
    """A server and a guard that read another one of two would disagree on who asks."""
    browser, _ = opened()
    scope = {
        "type": "http", "method": "GET", "path": f"{browser.guard.base}/table", "query_string": b"",
        "headers": [(b"host", browser.host.encode()), (b"cookie", browser.cookie.encode()), (b"host", b"evil.example")],
    }  # fmt: skip
    sent = []

    async def send(message):
        sent.append(message)

    asyncio.run(browser.app(scope, None, send))
    assert sent[0]["status"] == 403


def test_every_answer_forbids_what_the_page_does_not_need():
    browser, _ = opened()
    for path in ("/table", "/static/desk.js", "/progress", "/nothing"):
        headers = browser.get(path).headers
        assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'; style-src 'self'")
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["cross-origin-opener-policy"] == headers["cross-origin-resource-policy"] == "same-origin"


def test_a_form_that_is_too_long_is_refused(monkeypatch):
    monkeypatch.setattr("keepsum.desk.guards.MOST_FORM_BYTES", 1000)
    browser, _ = opened()
    assert browser.post("/example", {"name": "x" * 2000}).status == 403


def test_what_fails_says_nothing_of_the_data(capsys, monkeypatch):
    browser, desk = opened()

    def fail(*_):
        raise RuntimeError("count 12345")

    monkeypatch.setattr(desk, "scene", fail)
    answer = browser.get("/table")
    assert answer.status == 500
    assert "12345" not in answer.text
    out = capsys.readouterr()
    assert out.out + out.err == ""


def test_a_cookie_of_another_port_does_not_hide_ours():
    browser, _ = opened()
    evil = f"{browser.guard.cookie}=evil"
    for cookies in (f"{evil}; {browser.cookie}", f"{browser.cookie}; {evil}", f'a="; {browser.cookie}', browser.cookie):
        assert browser.get("/table", cookie=cookies).status == 200
    assert browser.get("/table", cookie=f"{evil}; x{browser.cookie}").status == 403


def test_a_link_is_shown_only_to_whoever_asked_for_it():
    browser, _ = opened()
    answer = browser.post("/link", {"step": "keep"})
    place = answer.headers["location"].removeprefix(browser.guard.base)
    for path in ("/keep", "/table", "/keep?said=x"):
        assert "token=" not in browser.page(path)
    assert "token=" in browser.page(place)
    assert "token=" not in browser.page(place)
