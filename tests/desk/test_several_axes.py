"""A table of several axes with a total kept for each, from the upload to the certificate: the noise is exact."""

from __future__ import annotations

import html
import json
import re
from itertools import product

import pytest

from desk.asking import PERSON, opened, release, released_files


@pytest.mark.audit
@pytest.mark.parametrize(
    ("kind", "method", "widest"),
    [({"kind": "laplace"}, "axis_elimination", 11), ({"kind": "gaussian", "delta": "1e-6"}, "conditional_cells", 16)],
    ids=["Laplace", "Gaussian"],
)
def test_county_age_and_sex_each_kept(kind, method, widest):
    browser, desk = opened()
    rows = [f"c{i:02},a{j},{sex},{30 + i * j}" for i, j, sex in product(range(20), range(8), "fm")]
    browser.upload("t.csv", "\n".join(["county,age,sex,n", *rows]).encode())
    browser.page("/table")
    browser.form("/keep", {"margin": ["0", "1", "2"]}, "keep")
    assert desk.draft.spec.keep.margins == [["county"], ["age"], ["sex"]]
    page = html.unescape(browser.form("/privacy", PERSON | kind, "privacy"))
    assert "trouble" not in page
    margin = int(re.search(r"±(\d+)", page)[1])
    assert margin == widest  # that of a cell, from draws; the proved bound for Laplace noise is twice as large
    assert "<h1>Released</h1>" in release(browser)
    guarantee = json.loads(released_files(browser)["certificate.json"])["guarantee"]
    assert guarantee["sampling"]["exactness"] == "exact"
    (block,) = guarantee["blocks"]
    assert block["sampler"]["method"] == method
