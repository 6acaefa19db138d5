"""What a publisher may tell, the form of an entry, and names that do nothing in it."""

import copy
import re
from pathlib import Path

import msgspec
import pytest

import keepsum as ks
from keepsum.report import registry
from keepsum.report.registry import PUBLISHER, Entry, registry_entry
from report.changed_certificates import FOLDERS, certificate, sample
from report.evil_names import EVIL, evil, html
from report.public_schema import COMPLETE, PUBLIC

# -- the publisher ----------------------------------------------------------------------------------


def test_what_is_missing_is_listed_and_shrinks():
    document = registry_entry(certificate(), {"basic": {"name": "Counties", "data_product_sector": "Energy"}})
    assert document["entry"]["deployment"]["basic"]["name"] == "Counties"
    told = {"basic.name", "basic.data_product_sector"}
    assert {*document["fill_in"]["required"], *document["fill_in"]["optional"]} == set(PUBLISHER) - told
    assert document["entry"]["deployment"]["administrative"]["tier"] == 1


def test_the_tier_is_that_of_the_fields_that_are_filled_in():
    first = copy.deepcopy(COMPLETE)
    del first["deployment_model"], first["implementation"], first["privacy_loss"]
    second = first | {"deployment_model": {
        name: COMPLETE["deployment_model"][name]
        for name in ("release_type", "data_source_type", "data_source_type_details")
    }}  # fmt: skip
    for publisher, tier in ((None, 1), (first, 1), (second, 2), (COMPLETE, 3)):
        entry = registry_entry(certificate(), publisher)["entry"]
        assert entry["deployment"]["administrative"]["tier"] == tier


def test_description_and_date_may_be_replaced():
    publisher = {"basic": {"description": "Counts.", "publication_date": "2026-01-31"}}
    basic = registry_entry(certificate(), publisher)["entry"]["deployment"]["basic"]
    assert (basic["description"], basic["publication_date"]) == ("Counts.", "2026-01-31")


@pytest.mark.parametrize(
    ("publisher", "words"),
    [
        ([], "got a value of type 'list'"),
        ({1: {}}, "got a key that is a value of type 'int'"),
        ({"basic": "Counties"}, "got a value of type 'str' for 'basic'"),
        ({"basic": {"title": "Counties"}}, "got 'basic.title'"),
        ({"nothing": {"name": "Counties"}}, "got 'nothing.name'"),
        ({"privacy_loss": {"privacy_parameters": {"epsilon": 0.1}}}, "got 'privacy_loss.privacy_parameters'"),
        ({"dp_variant": {"variant_name": "Pure DP"}}, "got 'dp_variant.variant_name'"),
        ({"administrative": {"status": "Approved"}}, "got 'administrative.status'"),
        ({"url_slug": 5}, "url_slug"),
        ({"basic": {"name": ""}}, "basic.name"),
        ({"basic": {"name": 5}}, "basic.name"),
        ({"basic": {"data_product_sector": "Farming"}}, "basic.data_product_sector"),
        ({"basic": {"data_curators": []}}, "basic.data_curators"),
        ({"basic": {"data_curators": [{"data_curator_name": "Office"}]}}, "data_curator_type"),
        ({"basic": {"publication_date": "31.1.2026"}}, "basic.publication_date"),
        ({"basic": {"publication_date": "2026-02-30"}}, "a day that exists"),
        ({"privacy_loss": {"number_of_privacy_units": 0}}, "number_of_privacy_units"),
        ({"deployment_model": {"release_type": "Several"}}, "deployment_model.release_type"),
    ],
)
def test_a_wrong_field_of_the_publisher_is_refused_in_one_sentence(publisher, words):
    with pytest.raises(ks.InputError, match=re.escape(words)) as caught:
        registry_entry(certificate(), publisher)
    assert str(caught.value).startswith("Argument publisher= must")
    assert caught.value.__context__ is None


def test_an_entry_needs_a_certificate():
    with pytest.raises(ks.InputError, match="must be made from a certificate, got a value of type 'dict'"):
        registry_entry({})


# -- the form ---------------------------------------------------------------------------------------


def test_the_schema_beside_the_code_is_that_of_the_code():
    path = Path(registry.__file__).with_name("registry.schema.json")
    assert path.read_bytes() == registry.json_schema()


def test_fields_are_those_of_the_registry():
    sections = {field.name: field.type for field in msgspec.structs.fields(registry.Deployment)}
    assert {name: [f.name for f in msgspec.structs.fields(kind)] for name, kind in sections.items()} == {
        name: fields.split() for name, fields in PUBLIC.items()
    }
    assert [field.name for field in msgspec.structs.fields(Entry)] == ["url_slug", "deployment"]
    for field in PUBLISHER.keys() - {"url_slug"}:
        section, name = field.split(".")
        assert name in PUBLIC[section].split()


TAGS = {"p", "ul", "li", "code"}


@pytest.mark.parametrize("label", EVIL)
def test_names_do_nothing_in_the_markdown_of_an_entry(label):
    made = registry_entry(evil(label))["entry"]["deployment"]
    for section in made.values():
        for text in section.values():
            if not isinstance(text, str):
                continue
            page = html(text)
            assert set(re.findall(r"<(\w+)", page)) <= TAGS
            outside = re.sub(r"<code>.*?</code>", "", page)
            assert "$" not in outside
            assert "\\" not in outside
            assert "://" not in outside
            assert "example" not in outside


def test_the_check_of_names_can_fail():
    assert set(re.findall(r"<(\w+)", html("x ![x](y) <b>"))) - TAGS


def test_nothing_of_the_published_entries_is_taken_for_markup():
    for folder in FOLDERS:
        for section in registry_entry(sample(folder))["entry"]["deployment"].values():
            for text in section.values():
                assert not isinstance(text, str) or set(re.findall(r"<(\w+)", html(text))) <= TAGS
