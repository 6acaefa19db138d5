"""An entry of the registry says what the certificate says, and never more."""

import re
from fractions import Fraction

import msgspec
import pytest

from keepsum.report.registry import REQUIRED, SOURCE, as_json, registry_entry
from report.changed_certificates import FOLDERS, certificate, sample
from report.public_schema import COMPLETE, problems


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
    unmet = msgspec.structs.replace(found._record, guarantee=msgspec.structs.replace(found.guarantee, blocks=[block]))
    assert registry_entry(unmet)["entry"]["deployment"]["privacy_loss"]["privacy_parameters"] == {}


def test_zcdp_up_to_a_total_variation_has_another_name():
    folder = next(folder for folder in FOLDERS if folder.name == "zcdp")
    found = sample(folder)
    assert registry_entry(found)["entry"]["deployment"]["dp_variant"]["variant_name"] == "Zero-concentrated DP"
    sampling = msgspec.structs.replace(found.guarantee.sampling, exactness="rounded", total_variation=1e-8)
    rounded = msgspec.structs.replace(
        found._record, guarantee=msgspec.structs.replace(found.guarantee, sampling=sampling)
    )
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
        ("not known", "privacy_loss.privacy_unit", "neither a person nor a record"),
        ("not known", "privacy_loss.privacy_unit_details", "no per-person loss is stated: how far a change of `place`"),
        (
            "weak reading",
            "privacy_loss.privacy_unit_details",
            "not against somebody who knows the attributes of others",
        ),
        ("weak reading", "privacy_loss.privacy_parameters_details", "not against somebody who knows their attributes"),
        ("upper bound", "privacy_loss.privacy_unit_details", "is an upper bound"),
        ("nonnegative", "implementation.post_processing", "2 of 3 cells changed, by at most 3"),
        ("nonnegative", "implementation.utility", "the table before post-processing"),
        ("nonnegative", "implementation.additional_information", "5" * 64),
        ("ledger", "implementation.composition", "Charged to dataset `people`, entry 12"),
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
