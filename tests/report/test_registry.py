"""An entry of the registry says what the certificate says, and never more."""

import copy
import re
from datetime import date
from fractions import Fraction
from pathlib import Path

import msgspec
import pytest
from markdown_it import MarkdownIt

import keepsum as ks
from keepsum.report import registry_schema
from keepsum.report.registry import as_json, registry_entry
from keepsum.report.registry_schema import PUBLISHER, REQUIRED, SOURCE, Entry
from report.samples import FOLDERS, certificate, sample

COMPLETE = {
    "url_slug": "counties",
    "basic": {
        "name": "Counties",
        "data_curators": [{"data_curator_name": "Office", "data_curator_type": "Government"}],
        "intended_use": "Planning.",
        "data_product_region": "Nowhere",
        "data_product_sector": "Education",
    },
    "privacy_loss": {"number_of_privacy_units": 1000},
    "deployment_model": {
        "trust_assumptions": "The office.",
        "actors": "The office and its readers.",
        "release_type": "One release",
        "release_type_details": "None is planned.",
        "data_source_type": "Static",
        "data_source_type_details": "A census.",
    },
    "implementation": {"preprocessing_and_hyperparameter_tuning": "None.", "justification": "By a board."},
    "administrative": {"registry_authors": ["A. Author"], "evidence_sources": {"page": {"misc": {"title": "A page"}}}},
}
# What the registry's own schema restricts, at the commit that is cited: the order and the kinds of fields.
CHOICE = {
    "data_product_type": "Summary statistics,Machine learning model,Dataset,Synthetic data,Interactive API,SQL queries",
    "data_product_sector": "Technology,Healthcare,Education,Government,Energy,Finance",
    "variant_name": "Pure DP,Approximate DP,Zero-concentrated DP,Renyi DP,Custom",
    "model_name": "Local,Central,Shuffle,Federated,Varies",
    "release_type": "One release,Many releases",
    "data_source_type": "Static,Dynamic",
    "access_type": "Interactive,Non-interactive",
    "status": "Converted,Draft,Pending,Changes Required,Approved,Approved (Update Requested),Approved (Pending)",
}
OTHER = {"data_curators": list, "number_of_privacy_units": int, "privacy_parameters": dict, "evidence_sources": dict,
         "registry_authors": list, "tier": int}  # fmt: skip
PUBLIC = {
    "basic": "name data_curators description intended_use data_product_type data_product_region data_product_sector "
    "publication_date",
    "dp_variant": "variant_name data_domain unprotected_quantities",
    "privacy_loss": "privacy_unit privacy_unit_details number_of_privacy_units privacy_parameters "
    "privacy_parameters_details",
    "deployment_model": "model_name model_name_details trust_assumptions actors release_type release_type_details "
    "data_source_type data_source_type_details access_type access_type_details",
    "implementation": "preprocessing_and_hyperparameter_tuning mechanisms composition post_processing justification "
    "utility additional_information",
    "administrative": "evidence_sources status registry_authors tier",
}


def problems(entry):
    """What the registry would have against an entry."""
    if list(entry) != ["url_slug", "deployment"] or list(entry["deployment"]) != list(PUBLIC):
        yield "sections"
    yield from [] if isinstance(entry["url_slug"], str) else ["url_slug"]
    for section, content in entry["deployment"].items():
        names = PUBLIC[section].split()
        if [name for name in names if name in content] != list(content):
            yield f"fields of {section}"
        for name, value in content.items():
            if not isinstance(value, OTHER.get(name, str)) or (name in CHOICE and value not in CHOICE[name].split(",")):
                yield f"{section}.{name}"
    date.fromisoformat(entry["deployment"]["basic"]["publication_date"])
    parameters = entry["deployment"]["privacy_loss"]["privacy_parameters"]
    if not all(name in ("epsilon", "delta", "rho") and type(value) is float for name, value in parameters.items()):
        yield "parameters"


def deployment(*changes):
    return registry_entry(certificate(*changes))["entry"]["deployment"]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_every_published_certificate_gives_an_entry(folder):
    found = sample(folder)
    document = registry_entry(found)
    assert set(problems(document["entry"])) == REQUIRED
    complete = registry_entry(found, COMPLETE)
    assert list(problems(complete["entry"])) == []
    assert complete["fill_in"] == {"required": [], "optional": []}
    assert complete["entry"]["deployment"]["administrative"]["tier"] == 3
    assert document == registry_entry(found)
    assert msgspec.json.decode(as_json(document)) == document


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_every_number_is_that_of_the_certificate(folder):
    found = sample(folder)
    made = registry_entry(found)["entry"]["deployment"]
    person, sampling = found.guarantee.person, found.guarantee.sampling
    parameters = made["privacy_loss"]["privacy_parameters"]
    for name in ("epsilon", "rho"):
        stated = getattr(person, name)
        assert parameters.get(name) == (None if stated is None else float(stated))
    if sampling.exactness == "exact":
        assert parameters.get("delta") == (None if person.delta is None else float(person.delta))
    else:
        assert Fraction(parameters["delta"]) >= Fraction(sampling.delta)
        (delta, *_) = re.findall(r"plus delta (\S+) from sampling", made["privacy_loss"]["privacy_unit_details"])
        assert parameters["delta"] == float(delta)
    assert f"±{found.accuracy.typical_margin:,} " in made["implementation"]["utility"]
    assert found.table.sha256 in made["implementation"]["additional_information"]
    assert found.software["keepsum"] in made["implementation"]["mechanisms"]
    assert f"{found.table.cells:,} cells" in made["basic"]["description"]
    assert made["basic"]["publication_date"] == found.released[:10]
    assert SOURCE["commit"] in made["implementation"]["additional_information"]


def test_a_plain_release():
    made = deployment()
    assert made["dp_variant"]["variant_name"] == "Pure DP"
    assert made["dp_variant"]["unprotected_quantities"] == "None."
    assert made["privacy_loss"]["privacy_parameters"] == {"epsilon": 0.5}
    assert made["privacy_loss"]["privacy_unit"].startswith("One person, if every person is counted once")
    assert made["implementation"]["post_processing"] == "None."


@pytest.mark.parametrize(
    ("change", "variant", "parameters"),
    [
        ("estimated", "Custom", {"epsilon": 0.5, "delta": 2.65e-7}),
        ("rounded", "Approximate DP", {"epsilon": 0.5, "delta": 2.65e-8}),
        ("seed", "Custom", {}),
        ("no guarantee", "Custom", {}),
        ("large epsilon", "Pure DP", {"epsilon": 12.0}),
        ("several records", "Pure DP", {"epsilon": 1.5}),
    ],
)
def test_no_more_is_claimed_than_the_weakest_part_supports(change, variant, parameters):
    made = deployment(change)
    assert made["dp_variant"]["variant_name"] == variant
    assert made["privacy_loss"]["privacy_parameters"] == parameters


@pytest.mark.parametrize("change", ["seed", "no guarantee"])
def test_where_nothing_is_guaranteed_no_loss_stands_anywhere_in_the_privacy_loss(change):
    loss = deployment()["privacy_loss"]
    assert "epsilon" in loss["privacy_unit_details"]
    assert "epsilon" in loss["privacy_parameters_details"]
    assert "epsilon" not in str(deployment(change)["privacy_loss"])


def test_chains_that_were_given_up_guarantee_nothing():
    found = sample(next(folder for folder in FOLDERS if folder.name == "chains"))
    assert registry_entry(found)["entry"]["deployment"]["privacy_loss"]["privacy_parameters"]
    (block,) = found.guarantee.blocks
    block = msgspec.structs.replace(block, convergence=msgspec.structs.replace(block.convergence, unmet=1))
    unmet = msgspec.structs.replace(found, guarantee=msgspec.structs.replace(found.guarantee, blocks=[block]))
    assert registry_entry(unmet)["entry"]["deployment"]["privacy_loss"]["privacy_parameters"] == {}


def test_zcdp_up_to_a_total_variation_has_another_name():
    folder = next(folder for folder in FOLDERS if folder.name == "zcdp")
    found = sample(folder)
    assert registry_entry(found)["entry"]["deployment"]["dp_variant"]["variant_name"] == "Zero-concentrated DP"
    sampling = msgspec.structs.replace(found.guarantee.sampling, exactness="rounded", total_variation=1e-8)
    rounded = msgspec.structs.replace(found, guarantee=msgspec.structs.replace(found.guarantee, sampling=sampling))
    made = registry_entry(rounded)["entry"]["deployment"]
    assert made["dp_variant"]["variant_name"] == "Custom"
    assert made["privacy_loss"]["privacy_parameters"] == {"delta": 1e-8, "rho": 0.08}


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ("estimated", "privacy_loss.privacy_parameters_details", "estimated, not proved"),
        ("seed", "privacy_loss.privacy_parameters_details", "whoever knows the seed can remove it"),
        ("seed", "implementation.mechanisms", "from a seed: not for publication"),
        ("records without a unit", "privacy_loss.privacy_unit", "One record; a person with several"),
        ("one record each, declared", "privacy_loss.privacy_unit", "as was declared and not checked"),
        ("several records", "privacy_loss.privacy_unit", "in all records of that person that were counted"),
        ("several records", "privacy_loss.privacy_unit_details", "At most 3 records of each person"),
        ("several records", "implementation.utility", "records left out by the bound per person are not in it"),
        ("pinned", "dp_variant.unprotected_quantities", "determine, without noise: 2."),
        ("bounded", "dp_variant.unprotected_quantities", "margin of error: 7."),
        ("not checked", "dp_variant.unprotected_quantities", "not checked: 9."),
        ("categories", "dp_variant.unprotected_quantities", "list of categories of `place`, taken from the data"),
        ("file order", "dp_variant.unprotected_quantities", "order of the rows of the confidential file"),
        ("carried", "dp_variant.unprotected_quantities", "Column `code`, which follows from `place`."),
        ("file attributes", "dp_variant.unprotected_quantities", "The attribute `UNIT` of the file."),
        ("kept", "dp_variant.unprotected_quantities", "the grand total, published exactly"),
        ("kept", "dp_variant.data_domain", "with the same kept totals"),
        ("kept", "privacy_loss.privacy_unit_details", "and have the same kept totals"),
        ("a value not protected", "dp_variant.unprotected_quantities", "Changes of `place`"),
        ("a value not protected", "privacy_loss.privacy_unit_details", "not protected for 1 value"),
        ("nothing protected", "privacy_loss.privacy_unit", "neither a person nor a record"),
        ("upper bound", "privacy_loss.privacy_unit_details", "is an upper bound"),
        ("nonnegative", "implementation.post_processing", "2 of 3 cells changed, by at most 3"),
        ("nonnegative", "implementation.utility", "the table before post-processing"),
        ("nonnegative", "implementation.additional_information", "5" * 64),
        ("ledger", "implementation.composition", "dataset '`people`', entry 12"),
        ("large epsilon", "privacy_loss.privacy_parameters_details", "this gives little protection"),
    ],
)
def test_what_is_weak_is_said(change, field, words):
    section, name = field.split(".")
    assert words not in deployment()[section][name]
    assert words in deployment(change)[section][name]


def test_a_loss_for_one_attribute_is_not_called_one_for_a_person():
    margins = sample(next(folder for folder in FOLDERS if folder.name == "margins"))
    loss = registry_entry(margins)["entry"]["deployment"]["privacy_loss"]
    assert loss["privacy_unit"].startswith("One attribute of one person")
    assert "several attributes of one person at once may be larger" in loss["privacy_unit_details"]


def test_without_a_ledger_the_entry_says_so():
    assert "not tracked in a ledger" in deployment()["implementation"]["composition"]
    assert "not tracked" not in deployment("ledger")["implementation"]["composition"]


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
    assert str(caught.value).startswith("publisher= must")
    assert caught.value.__context__ is None


def test_an_entry_needs_a_certificate():
    with pytest.raises(ks.InputError, match="must be made from a certificate, got a value of type 'dict'"):
        registry_entry({})


# -- the form ---------------------------------------------------------------------------------------


def test_the_schema_beside_the_code_is_that_of_the_code():
    path = Path(registry_schema.__file__).with_name("registry.schema.json")
    assert path.read_bytes() == registry_schema.json_schema()


def test_fields_are_those_of_the_registry():
    sections = {field.name: field.type for field in msgspec.structs.fields(registry_schema.Deployment)}
    assert {name: [f.name for f in msgspec.structs.fields(kind)] for name, kind in sections.items()} == {
        name: fields.split() for name, fields in PUBLIC.items()
    }
    assert [field.name for field in msgspec.structs.fields(Entry)] == ["url_slug", "deployment"]
    for field in PUBLISHER.keys() - {"url_slug"}:
        section, name = field.split(".")
        assert name in PUBLIC[section].split()


EVIL = [
    "<script>alert(1)</script>", "[x](https://example.org)", "![x](y)", "a`b``c", "# title\n\n- item",
    "**b** _i_ ~~s~~", r"\(x\) $y$ \[z\]", "https://example.org", "www.example.org",
    "a|b", "&amp;", "'quoted\" \\", "`", " ", "\u202eabc",
]  # fmt: skip
TAGS = {"p", "ul", "li", "code"}


def html(text):
    return MarkdownIt("gfm-like", {"linkify": False}).render(text)


def evil(label):
    return certificate(
        "kept", "categories", "several records", "ledger", "carried", "a value not protected", "file attributes",
        {
            "domain.axes.0.name": label, "guarantee.person.attributes.0.axis": label, "domain.taken_from_data": [label],
            "records.unit": label, "ledger.dataset": label, "carried.0.name": label, "carried.0.axis": label,
            "table.attributes": {label: label}, "table.count": label,
            "kept.parts": [
                {"kind": "margin", "axes": [label], "totals": []},
                {"kind": "subsets", "part": 0, "sha256": "0" * 64, "totals": [{"name": label, "value": 1}]},
            ],
        },
    )  # fmt: skip


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
