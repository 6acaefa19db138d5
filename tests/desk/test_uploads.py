"""Uploads over a real connection: a file that is too large is refused at once, however it comes."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Iterator
from functools import partial
from urllib.parse import urlsplit

import pytest

from keepsum.desk import server as module
from keepsum.desk.guards import CSRF_HEADER
from support import HANG

PIECE = bytes(2**16)


@pytest.fixture
def small_limit(monkeypatch):
    """Before the page is served, which is when its limit is read."""
    monkeypatch.setattr(module, "make_app", partial(module.make_app, limit=10**6))


@pytest.fixture
def connected(link):
    """A connection and the headers of an upload from the page."""
    address = link()
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.netloc, timeout=HANG)
    connection.request("GET", f"{parts.path}?{parts.query}")
    answer = connection.getresponse()
    answer.read()
    cookie = answer.headers["set-cookie"].partition(";")[0]
    connection.request("GET", f"{parts.path}table", headers={"cookie": cookie})
    page = connection.getresponse().read().decode()
    csrf = re.search('data-csrf="([^"]*)"', page)[1]
    headers = {
        "cookie": cookie, "origin": f"http://{parts.netloc}", CSRF_HEADER.decode(): csrf, "x-keepsum-name": "t.csv",
    }  # fmt: skip
    yield connection, f"{parts.path}upload", headers
    connection.close()


def test_three_gigabytes_are_refused_before_they_come(connected, desk):
    connection, path, headers = connected
    connection.putrequest("POST", path)
    for name, value in (headers | {"content-length": "3000000000"}).items():
        connection.putheader(name, value)
    connection.endheaders()  # and not a byte of the file
    answer = connection.getresponse()
    assert answer.status == 413
    assert "at most 1,000,000,000 bytes" in json.loads(answer.read())["problem"]
    assert desk.draft is None


def test_a_file_that_does_not_say_how_large_it_is_ends_at_the_limit(small_limit, connected, desk):
    connection, path, headers = connected
    given = 0

    def pieces() -> Iterator[bytes]:
        nonlocal given
        for _ in range(3 * 10**9 // len(PIECE)):
            given += len(PIECE)
            yield PIECE

    try:
        connection.request("POST", path, body=pieces(), headers=headers, encode_chunked=True)
        status = connection.getresponse().status
    except ConnectionError:
        status = 413  # the answer was not waited for, and the connection is closed
    assert status == 413
    assert given < 10**8  # what fits between the two ends besides; three gigabytes would not
    assert desk.draft is None


def test_an_upload_that_breaks_off_leaves_the_draft(connected, desk, link):
    connection, path, headers = connected
    connection.request("POST", path, body=b"a,n\nx,1\ny,2\n", headers=headers)
    assert connection.getresponse().read()
    version = desk.version
    connection.putrequest("POST", path)
    for name, value in (headers | {"content-length": "1000"}).items():
        connection.putheader(name, value)
    connection.endheaders(b"b,n\nz,1\n")
    connection.close()
    other = urlsplit(link())
    again = http.client.HTTPConnection(other.netloc, timeout=HANG)
    again.request("GET", f"{other.path}?{other.query}")
    assert again.getresponse().status == 200
    again.close()
    assert desk.version == version
