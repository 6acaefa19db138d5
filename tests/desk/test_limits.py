"""Too much of anything is refused in a sentence of ours, and keeps nothing else waiting."""

from __future__ import annotations

import http.client
import io
import json
import re
import socket
import threading
import warnings
import zipfile
from contextlib import ExitStack, suppress
from functools import partial
from urllib.parse import urlsplit

import pytest

from desk.asking import opened
from keepsum.desk import deriving, guards, server
from keepsum.desk.jobs import BackgroundJob, Worker
from keepsum.desk.serving import Connection
from keepsum.desk.table_views import MOST_MARGINS, margins_of
from keepsum.errors import KeepsumWarning
from keepsum.tables.domain import Domain
from support import HANG


def test_a_workbook_of_nothing_is_refused_before_it_is_unpacked():
    browser, _ = opened()
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
        archive.writestr("xl/worksheets/sheet1.xml", b" " * 10**8)
    browser.upload("t.xlsx", sink.getvalue())
    assert "unpacks to more than 100 times its size" in browser.page("/table")


def test_work_that_does_not_notice_that_it_was_stopped_keeps_nobody_waiting(monkeypatch):
    browser, desk = opened()
    gate, begun, real = threading.Event(), threading.Event(), deriving.MAKERS["columns"]

    def deaf(draft, made, job, ledger):
        if draft.upload.name == "bomb.csv":
            begun.set()
            gate.wait()
        return real(draft, made, job, ledger)

    monkeypatch.setitem(deriving.MAKERS, "columns", deaf)
    first = threading.Thread(target=browser.upload, args=("bomb.csv", b"a,n\nx,1\ny,2\n"))
    first.start()
    assert begun.wait()
    browser.post("/stop", {"step": "table"})
    first.join()  # whoever waited for the columns waits no more
    assert "was stopped" in browser.get("/table").text
    browser.upload("good.csv", b"b,n\nx,1\ny,2\nz,3\n")
    assert "3 cells" in browser.page("/table")
    gate.set()
    assert desk.draft.upload.name == "good.csv"


def test_two_pieces_of_work_are_never_done_at_once():
    worker, gate, begun, done = Worker(), threading.Event(), threading.Event(), []

    def first(_):
        begun.set()
        gate.wait()
        done.append(1)

    jobs = [worker.start(BackgroundJob(first)), worker.start(BackgroundJob(lambda _: done.append(2)))]
    assert begun.wait()
    assert not jobs[1].is_done
    gate.set()
    assert all(job.wait(None) for job in jobs)
    assert done == [1, 2]


@pytest.mark.audit
@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/keep", {"margin": "1" * 5000}),
        ("/unset", {"number": "1" * 5000}),
        ("/fix", {"number": "1" * 5000}),
        ("/set", {"cells": "1" * 5000, "name": "x"}),
        ("/privacy", {"epsilon": "9" * 5000, "kind": "laplace", "reading": "person"}),
        ("/privacy", {"epsilon": "1", "kind": "gaussian", "delta": "9" * 5000, "reading": "person"}),
        ("/table", {"rows": "records", "most": "9" * 5000, "role-0": "axis"}),
        ("/release", {"version": "9" * 5000}),
    ],
)
def test_very_long_numbers_are_refused_in_a_sentence(path, fields):
    browser, desk = opened()
    browser.form("/example", {"name": "children"})
    answer = browser.post(path, {"version": desk.version, "step": "keep", **fields})
    assert answer.status == 303
    browser.page(answer.headers["location"].removeprefix(browser.guard.base))
    for step in ("table", "keep", "privacy", "release"):
        assert browser.get(f"/{step}?page={'9' * 5000}").status == 200
    assert browser.get(f"/margin?epsilon={'9' * 5000}").status == 200


def test_no_answer_is_in_the_words_of_the_framework(monkeypatch):
    browser, desk = opened()
    for path in ("/nothing", "/table/", "/release.zip/"):
        answer = browser.get(path)
        assert (answer.status, answer.text) == (404, server.NOWHERE)
    answer = browser.get("/stop")
    assert (answer.status, answer.text) == (405, server.NOWHERE)
    monkeypatch.setattr(desk, "stop", lambda: [][0])
    answer = browser.post("/stop", {})
    assert (answer.status, answer.text) == (500, guards.FAILED)


def test_every_form_has_its_limit(monkeypatch):
    monkeypatch.setattr(guards, "MOST_FORM_BYTES", 1000)
    browser, desk = opened()
    answer = browser.post("/example", {"name": "children", "more": "x" * 2000}, x_keepsum_csrf=browser.guard.csrf)
    assert answer.status == 403
    assert desk.draft is None
    assert browser.upload("t.csv", b"a,n\n" + b"x,1\n" * 500).status == 200


def chain(length):
    names = [f"a{k}" for k in range(length)]
    rows = [tuple(f"{top}{k}" for k in range(length)) for top in "pqrs"]
    nested = dict(zip(names[1:], names, strict=False))
    return Domain({name: [row[: k + 1] if k else row[0] for row in rows] for k, name in enumerate(names)}, nested)


def test_margins_of_many_levels_are_offered_without_trying_all_sets_of_them():
    assert margins_of(chain(30)) == [(f"a{k}",) for k in range(29)]
    flat = Domain({name: ["x", "y"] for name in "abc"})
    assert margins_of(flat) == [("a",), ("b",), ("c",), ("a", "b"), ("a", "c"), ("b", "c")]
    wide = Domain({name: ["x", "y"] for name in "abcdefghijkl"})
    assert len(margins_of(wide)) == len(set(margins_of(wide))) == MOST_MARGINS


# -- over a real connection -------------------------------------------------------------------------


@pytest.fixture
def address(link):
    """The address of the page, and the cookie of a browser that has opened it."""
    parts = urlsplit(link())
    connection = http.client.HTTPConnection(parts.netloc, timeout=HANG)
    connection.request("GET", f"{parts.path}?{parts.query}")
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return parts.netloc, parts.path, answer.headers["set-cookie"].partition(";")[0]


def asked(address, path, method="GET", body=None, **headers):
    host, base, cookie = address
    connection = http.client.HTTPConnection(host, timeout=HANG)
    connection.request(method, f"{base}{path}", body, {"cookie": cookie, "origin": f"http://{host}"} | headers)
    answer = connection.getresponse()
    found = answer.status, answer.read().decode()
    connection.close()
    return found


def test_connections_that_say_nothing_keep_nobody_out(monkeypatch, address):
    monkeypatch.setattr(Connection, "most", 5)
    monkeypatch.setattr(Connection, "seconds", HANG)
    host, _, port = address[0].partition(":")
    with ExitStack() as stack:
        silent = [socket.create_connection((host, int(port)), timeout=HANG) for _ in range(20)]
        for one in silent:
            stack.enter_context(one)
            with suppress(ConnectionError):  # those who came first are gone by now
                one.sendall(b"GET / HTTP/1.1\r\n")
        assert asked(address, "table")[0] == 200
        with suppress(ConnectionError):
            assert silent[0].recv(1) == b""


def test_the_head_of_a_request_must_come_soon(monkeypatch, address):
    monkeypatch.setattr(Connection, "seconds", 0.05)
    host, _, port = address[0].partition(":")
    with socket.create_connection((host, int(port)), timeout=HANG) as slow:
        slow.sendall(b"GET / HTTP/1.1\r\n")
        assert slow.recv(1) == b""
    with socket.create_connection((host, int(port)), timeout=HANG) as slow:  # nor may a second one be slow
        slow.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\nGET")
        assert slow.recv(12) == b"HTTP/1.1 403"
        while slow.recv(1000):
            pass


def test_a_sender_that_listens_only_at_the_end_hears_why(monkeypatch, request):
    monkeypatch.setattr(server, "make_app", partial(server.make_app, limit=10**6))
    address = request.getfixturevalue("address")
    csrf = re.search('data-csrf="([^"]*)"', asked(address, "table")[1])[1]
    pieces = iter([bytes(10**5)] * 30)
    status, text = asked(address, "upload", "POST", pieces, **{"x-keepsum-csrf": csrf})
    assert status == 413
    assert "at most 1,000,000 bytes" in json.loads(text)["problem"]


def test_work_is_quiet_whoever_changes_the_filters_meanwhile():
    """One desk is at work while filters are changed, as pytest does between tests; then another one works."""
    begun, gate = threading.Event(), threading.Event()
    held = BackgroundJob(lambda job: begun.set() or gate.wait())
    thread = threading.Thread(target=held.run)
    thread.start()
    begun.wait()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        other = BackgroundJob(lambda job: warnings.warn("of no concern", KeepsumWarning, stacklevel=1))
        other.run()
        assert other.problem is None
        with pytest.raises(UserWarning):
            warnings.warn("of others", stacklevel=1)
    gate.set()
    thread.join()
