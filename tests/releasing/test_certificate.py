import json
import os
from pathlib import Path

import msgspec
import numpy as np
import pytest

import keepsum as ks
from keepsum import Certificate
from keepsum.releasing.certificate import certificate_topics, json_schema
from keepsum.releasing.codec import domain_of
from keepsum.releasing.release import prepare
from keepsum.releasing.wording import as_html
from keepsum.sources.writing import table_hash

LAPLACE = ks.Laplace.per_unit(epsilon=0.25)
SCHEMA = Path(ks.__file__).parent / "releasing" / "certificate.schema.json"


def test_the_schema_in_the_repository_is_the_one_in_force():
    if os.environ.get("KEEPSUM_GOLDEN") == "write":
        SCHEMA.write_bytes(json_schema())
    assert SCHEMA.read_bytes() == json_schema()


def test_no_confidential_number_in_the_certificate():
    """Counts that stand nowhere else, in a table whose kept totals hide them."""
    counts = [[7919, 7907, 7901], [7883, 7879, 7877]]
    table = ks.Table.from_array(counts, axes={"a": ["x", "y"], "b": ["p", "q", "r"]})
    out = ks.release(table, keep=["a"], mechanism=ks.Laplace.per_unit(epsilon=0.01))
    text = out.certificate.to_json().decode()
    assert not any(str(count) in text for row in counts for count in row)
    assert str(sum(counts[0])) in text
    assert table_hash(table) not in text


def test_the_plan_can_be_rebuilt_without_the_data(children):
    keep = children.keep("county", "education") + ks.Invariants.matrix([[k % 3 for k in range(16)]]).over(
        children.domain
    )
    out = ks.plan(keep=keep, mechanism=ks.Laplace.per_unit(epsilon="1/3")).release(children)
    record = Certificate.from_json(out.certificate.to_json())
    assert record == out.certificate
    again = record.plan(out.invariants_file)
    assert again.explain(details=True) == out.plan.explain(details=True)
    assert again.invariants == out.plan.invariants
    assert again.mechanism == out.plan.mechanism
    with pytest.raises(ks.InputError, match="there is none beside it"):
        record.plan()
    with pytest.raises(ks.InputError, match="hash"):
        record.plan(out.invariants_file + b" ")


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
        data | {"schema": "keepsum.certificate/1"},
        data | {"schema": "keepsum.certificate/4"},
        data | {"schema": None},
        data | {"released": "yesterday"},
        data | {"table": data["table"] | {"cells": "16"}},
        data | {"mechanism": data["mechanism"] | {"epsilon": "0.25"}},
        [data],
    ]
    for case in wrong:
        with pytest.raises(ks.InputError, match=r"must follow the schema keepsum\.certificate/3"):
            Certificate.from_json(msgspec.json.encode(case))
    for data in (b"", b"{", b"\xff\xfe"):
        with pytest.raises(ks.InputError, match=r"must follow the schema keepsum\.certificate/3"):
            Certificate.from_json(data)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"schema": "keepsum.certificate/1"}, "which was never published. Release the table again"),
        ({"schema": "keepsum.certificate/4"}, "If a later version of Keepsum wrote it, update Keepsum"),
        ({"colour": "blue"}, "If a later version of Keepsum wrote it, update Keepsum"),
    ],
)
def test_other_versions_are_refused_in_a_sentence(released, change, sentence):
    data = json.loads(released.certificate.to_json()) | change
    with pytest.raises(ks.InputError, match=sentence):
        Certificate.from_json(msgspec.json.encode(data))


def test_records_are_data(released):
    certificate = released.certificate
    assert certificate.mechanism.parameters == {"epsilon": "1/4"}
    assert (certificate.guarantee.person.distance.length, certificate.guarantee.person.epsilon) == (4, "1")
    assert (certificate.guarantee.sampling.delta, certificate.guarantee.sampling.total_variation) == ("0", 0)
    assert [block.exactness for block in certificate.guarantee.blocks] == ["exact"]
    assert [len(part.totals) for part in certificate.kept.parts] == [4, 4, 1]
    assert "SHA-256" in dict(certificate_topics(certificate, details=True))
    with pytest.raises(AttributeError):
        certificate.ledger = "x"


def test_no_sentence_is_stored(released):
    """Texts are names, kinds and numbers: none has a blank, but those that users gave."""

    def texts(value):
        if isinstance(value, dict):
            return [text for inner in value.values() for text in texts(inner)]
        if isinstance(value, list):
            return [text for inner in value for text in texts(inner)]
        return [value] if isinstance(value, str) else []

    stored = texts(json.loads(released.certificate.to_json()))
    assert {text for text in stored if " " in text} == {"Very High"}


def test_the_view_says_what_the_facts_say(released):
    view = as_html(certificate_topics(released.certificate, details=True))
    for sentence in (
        "4 totals of county, 4 totals of education, the grand total",
        "proportional to exp(-0.25 |z|₁), over all z that keep every total unchanged",
        "4 × 4 table with both margins kept: exact, by splitting the columns",
        "epsilon 0.25 per unit of l1 distance, between any two tables with the same kept totals",
        "per-person epsilon 1 (l1 distance 4: two people exchange values), for a change of any one attribute to any "
        "value that the kept totals allow",
        "from the operating system",
        "county 4, education 4: 16 cells",
        "typical 95% margin of error",
    ):
        assert sentence in view
    assert "keepsum verify" not in view  # words of the shell
    later = Certificate.from_json(released.certificate.to_json().replace(b"column_splitting", b"row_splitting"))
    assert "both margins kept: exact, by row splitting" in as_html(certificate_topics(later, details=True))


def test_large_totals_are_written_as_text(tmp_path):
    """Not every program that reads JSON could tell 2^53 from 2^53 + 1."""
    table = ks.Table.from_array([2**53, 1, 7, 5], axes={"a": ["x", "y", "z", "w"]})
    keep = table.keep(total=True) + ks.Invariants.matrix([[-1, -1, 0, 0]]).over(table.domain)
    out = ks.plan(keep=keep, mechanism=LAPLACE).release(table)
    values = [[total.value for total in part.totals] for part in out.certificate.kept.parts]
    assert values == [[str(2**53 + 13)], [str(-(2**53) - 1)]]
    path = out.save(tmp_path / "out.csv")
    assert ks.verify(path)
    file = tmp_path / "out.certificate.json"
    file.write_text(file.read_text().replace(f'"{2**53 + 13}"', f'"{2**53 + 12}"'))
    assert not ks.verify(path)
    file.write_text(file.read_text().replace(f'"{2**53 + 12}"', f"{2**53 + 13}"))
    (failed,) = ks.verify(path).checks
    assert "beyond 2^53 - 1" in failed.words


def test_labels_that_json_cannot_hold_are_refused_before_the_draw():
    table = ks.Table.from_array([5, 6], axes={"id": [1, 2**53]})
    with pytest.raises(ks.DataError, match=r"Labels of axis 'id' must be integers up to 2\^53 - 1"):
        prepare(ks.plan(table, keep=[[]], mechanism=LAPLACE)._record, table)


@pytest.mark.parametrize(
    ("mechanism", "expected"),
    [
        (ks.Laplace.per_unit(epsilon="1/3"), ("1.33333333334", None, None)),
        (ks.Laplace.per_unit(epsilon=0.5, norm="l2"), ("1", None, None)),
        (ks.Gaussian.per_unit(epsilon=0.5, delta="1e-6"), ("1", "2.64872127071e-6", None)),
        (ks.Gaussian.per_unit(rho="1/8"), (None, None, "0.5")),
        (ks.Gaussian(sigma=3), (None, None, "0.222222222223")),
    ],
)
def test_the_loss_of_one_person_is_rounded_up(children, mechanism, expected):
    person = ks.release(children, keep=["county", "education"], mechanism=mechanism).certificate.guarantee.person
    assert (person.epsilon, person.delta, person.rho) == expected
