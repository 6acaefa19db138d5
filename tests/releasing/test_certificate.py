import json
import os
from pathlib import Path

import msgspec
import numpy as np
import pytest

import keepsum as ks
from keepsum.releasing.certificate import Certificate, json_schema
from keepsum.releasing.codec import domain_of
from keepsum.sources.writing import table_hash

LAPLACE = ks.Laplace(epsilon=0.25)
SCHEMA = Path(ks.__file__).parent / "releasing" / "certificate.schema.json"


def test_the_schema_in_the_repository_is_the_one_in_force():
    if os.environ.get("KEEPSUM_GOLDEN") == "write":
        SCHEMA.write_bytes(json_schema())
    assert SCHEMA.read_bytes() == json_schema()


def test_no_confidential_number_in_the_certificate():
    """Counts that stand nowhere else, in a table whose kept totals hide them."""
    counts = [[7919, 7907, 7901], [7883, 7879, 7877]]
    table = ks.Table.from_array(counts, axes={"a": ["x", "y"], "b": ["p", "q", "r"]})
    out = ks.release(table, keep=["a"], mechanism=ks.Laplace(epsilon=0.01))
    text = out.certificate.to_json().decode()
    assert not any(str(count) in text for row in counts for count in row)
    assert str(sum(counts[0])) in text
    assert table_hash(table) not in text


def test_the_plan_can_be_rebuilt_without_the_data(children):
    keep = children.keep("county", "education") + ks.Invariants.matrix([[k % 3 for k in range(16)]]).over(
        children.domain
    )
    out = ks.plan(keep, ks.Laplace(epsilon="1/3")).release(children)
    record = Certificate.from_json(out.certificate.to_json())
    assert record == out.certificate
    again = record.plan(out.invariants)
    assert again.explain() == out.plan.explain()
    assert again.invariants == out.plan.invariants
    assert again.mechanism == out.plan.mechanism
    with pytest.raises(ks.InputError, match="not beside it"):
        record.plan()
    with pytest.raises(ks.InputError, match="hash"):
        record.plan(out.invariants + b" ")


def test_any_domain_survives():
    domain = ks.Domain(
        {"state": ["IL", "WI"], "county": {"IL": ["Cook", "Lake"], "WI": ["Lake"]}, "age": [1, 2, 3]},
        within={"county": "state"},
    ).without({"state": "WI", "age": 2})
    table = ks.Table.from_array(np.arange(domain.size), axes=domain)
    out = ks.release(table, keep=["state"], mechanism=LAPLACE)
    assert domain_of(Certificate.from_json(out.certificate.to_json()).domain) == domain


def test_certificates_are_read_strictly(released):
    data = json.loads(released.certificate.to_json())
    assert Certificate.from_json(msgspec.json.encode(data)) == released.certificate
    wrong = [
        data | {"extra": 1},
        {key: value for key, value in data.items() if key != "ledger"},
        data | {"schema": "keepsum.certificate/2"},
        data | {"released": "yesterday"},
        data | {"table": data["table"] | {"cells": "16"}},
        data | {"mechanism": data["mechanism"] | {"epsilon": "0.25"}},
        [data],
    ]
    for case in wrong:
        with pytest.raises(ks.InputError, match=r"keepsum\.certificate/1"):
            Certificate.from_json(msgspec.json.encode(case))
    for data in (b"", b"{", b"\xff\xfe"):
        with pytest.raises(ks.InputError, match=r"keepsum\.certificate/1"):
            Certificate.from_json(data)


def test_records_are_data(released):
    assert released.certificate.mechanism.epsilon == "1/4"
    assert released.certificate.guarantee.person.distance == 4
    assert [part.value for part in released.certificate.guarantee.delta] == ["0", "0"]
    assert [block.guarantee for block in released.certificate.guarantee.blocks] == ["exact"]
    assert len(released.certificate.kept.totals) == 9
    assert "SHA-256" in released.certificate._repr_html_()
    with pytest.raises(AttributeError):
        released.certificate.ledger = "x"
