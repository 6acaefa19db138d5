"""Who types a number reads the same number: in Python, in a spec, in the shell, in a ledger, in Spark.

What is typed is the loss of one person. Each way to type it makes a plan, and what the plan, its release and its ledger
say of one person is compared with it: never more, and not less either but for the last of twelve digits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

import keepsum as ks
from keepsum.cli.app import run
from keepsum.planning.plan import CompiledPlan, compile_plan
from keepsum.privacy.numbers import Loss
from keepsum.releasing.wording import guarantee_of
from keepsum.spark.preparing import Declared
from keepsum.tables.origins import Records

COUNTIES = {"IL": ["Cook", "Lake"], "WI": ["Dane"]}
DOMAIN = ks.Domain(
    {"state": ["IL", "WI"], "county": COUNTIES, "sex": ["f", "m"], "age": ["old", "young"]}, within={"county": "state"}
)
TABLE = ks.Table.from_array(np.arange(20, 20 + DOMAIN.size), DOMAIN)
KEPT: dict[str, list[list[str]]] = {
    "nothing": [],
    "the grand total": [[]],
    "a hierarchy": [["state"], ["county"]],
    "crossed margins": [["county"], ["sex"]],
    "a chain, weak reading": [["state", "sex"], ["sex", "age"]],
    "all two-way margins": [["state", "sex"], ["sex", "age"], ["state", "age"]],
}
# Typed arguments, in Python; the shell's and the spec's are made from them.
TYPED: dict[str, dict[str, Any]] = {
    "epsilon": {"epsilon": "1"},
    "epsilon, l2": {"epsilon": "0.3", "norm": "l2"},
    "epsilon and delta": {"epsilon": "0.5", "delta": "1e-6"},
    "rho": {"rho": "0.1"},
    "focus": {"epsilon": "1", "focus": {"county": "2"}, "cell_share": "3"},
    "focus, rho": {"rho": "0.1", "focus": {"sex": "2"}},
    "one attribute": {"epsilon": "0.7", "attributes": ["sex"]},
    "the nearest value": {"rho": "0.2", "to": "some other value"},
}
CASES = [
    (kept, typed)
    for kept, typed in product(KEPT, TYPED)
    if not (typed == "focus" and kept in ("a hierarchy", "crossed margins"))  # the focused totals are kept
    and not (typed == "focus, rho" and kept != "the grand total")
    and not (typed == "focus" and kept in ("a chain, weak reading", "all two-way margins"))  # no exact sampler
]


def is_gaussian(typed: dict[str, Any]) -> bool:
    return "rho" in typed or "delta" in typed


def mechanism_of(typed: dict[str, Any]) -> ks.Laplace | ks.Gaussian:
    return ks.Gaussian(**typed) if is_gaussian(typed) else ks.Laplace(**typed)


def check(stated: Loss, typed: dict[str, Any]) -> None:
    """A loss that is what was typed: in words, and as a number that is no larger."""
    wanted = {name: Fraction(typed[name]) for name in ("epsilon", "delta", "rho") if name in typed}
    assert {name: getattr(stated, name) for name in ("epsilon", "delta", "rho")}.keys() >= wanted.keys()
    for name, number in wanted.items():
        assert number * (1 - Fraction(1, 10**10)) <= getattr(stated, name) <= number, name
    assert {name for name in ("epsilon", "delta", "rho") if getattr(stated, name) is not None} == wanted.keys()


def asked(plan: CompiledPlan) -> Loss:
    """The loss for the changes that were asked about, which are all changes of one attribute unless it was said."""
    assert plan.neighbours is not None
    assert plan.asked_distance is not None
    if "attributes" not in repr(plan.neighbours):
        assert plan.asked_distance == plan.person
    return plan.mechanism.loss(plan.asked_distance)


def of_every_change(typed: dict[str, Any]) -> bool:
    return not {"attributes", "to"} & typed.keys()


def words_of(typed: dict[str, Any]) -> str:
    """What was typed, as it is said."""
    if "rho" in typed:
        return f"rho {typed['rho']} (zCDP)"
    return f"epsilon {typed['epsilon']}" + (f", delta {typed['delta']}" if "delta" in typed else "")


@pytest.mark.parametrize(("kept", "name"), CASES)
def test_in_python(kept, name):
    typed = TYPED[name]
    plan = ks.plan(keep=TABLE.keep(*KEPT[kept]), mechanism=mechanism_of(typed))
    check(asked(plan._record), typed)
    if of_every_change(typed):
        check(
            Loss(plan.guarantee.person_epsilon, plan.guarantee.person_delta or None, plan.guarantee.person_rho), typed
        )
        assert f", per-person {words_of(typed)}, " in repr(plan)
        shown = " ".join(plan.explain().split())
        assert f"One person per-person {words_of(typed)} (" in shown
        assert "per unit" not in shown
        assert str(plan.guarantee).startswith(f"per-person {words_of(typed)}; ")
    else:
        changes = "sex" if "attributes" in typed else "any attribute to some other value"
        assert f", {plan.guarantee.person_words}, {words_of(typed)} for a change of {changes}, " in repr(plan)
        assert f": {words_of(typed)} (" in " ".join(plan.explain().split("For the requested neighbours")[1].split())


@pytest.mark.parametrize(("kept", "name"), [case for case in CASES if of_every_change(TYPED[case[1]])])
def test_in_certificates_and_ledgers(kept, name, tmp_path):
    typed = TYPED[name]
    budget = ks.Budget(rho=10) if "rho" in typed else ks.Budget(100, "1/10" if "delta" in typed else None)
    ledger = ks.Ledger.create(tmp_path / "ledger.db", budget=budget)
    release = ks.release(TABLE, keep=KEPT[kept], mechanism=mechanism_of(typed), ledger=ledger)
    assert f"per-person {words_of(typed)})" in repr(release)
    assert f"; per-person {words_of(typed)})" in repr(release.certificate)
    read = guarantee_of(release.certificate.mechanism, release.certificate.guarantee)
    check(read.person_loss, typed)
    person = release.certificate.guarantee.person
    check(Loss(*(None if n is None else Fraction(n) for n in (person.epsilon, person.delta, person.rho))), typed)
    spent = ledger.standing().spent
    if "delta" in typed:
        assert ledger.standing().budget.per_person  # zCDP at the budget's delta: another pair with the same noise
    else:
        check(spent, typed)


def spec_of(kept: str, typed: dict[str, Any]) -> str:
    focus = "".join(f"\n[mechanism.focus]\n{axis} = {share}" for axis, share in typed.get("focus", {}).items())
    numbers = [f"{key} = {typed[key]}" for key in ("epsilon", "delta", "rho", "cell_share") if key in typed]
    texts = [f"{key} = {json.dumps(typed[key])}" for key in ("norm", "attributes", "to") if key in typed]
    kind = 'kind = "gaussian"\n' if is_gaussian(typed) else ""
    margins = [margin for margin in KEPT[kept] if margin]
    keep = "nothing = true" if kept == "nothing" else f"margins = {json.dumps(margins)}\n"
    keep += "total = true" if kept == "the grand total" else ""
    return (
        'version = 1\n[source]\ndata = "counts.csv"\ncount = "n"\n[axes.within]\ncounty = "state"\n'
        f"[keep]\n{keep}\n[mechanism]\n{kind}" + "\n".join([*numbers, *texts]) + focus + "\n"
    )


def options_of(kept: str, typed: dict[str, Any]) -> list[str]:
    options = ["counts.csv", "--count", "n", "--within", "county:state"]
    for margin in KEPT[kept]:
        options += ["--keep", ",".join(margin)] if margin else ["--keep-total"]
    options += ["--keep-nothing"] * (not KEPT[kept]) + ["--mechanism", "gaussian"] * is_gaussian(typed)
    for name, value in typed.items():
        for one in [f"{axis}={share}" for axis, share in value.items()] if name == "focus" else [value]:
            options += [f"--{name.replace('_', '-')}", ",".join(one) if isinstance(one, list) else one]
    return options


@pytest.fixture
def planned(tmp_path, monkeypatch, capsys) -> Callable[..., dict[str, Any]]:
    """What ``keepsum plan --json`` says, with these options, in a folder with the table."""
    monkeypatch.chdir(tmp_path)
    rows = [",".join([*DOMAIN.cell(cell).values(), str(count)]) for cell, count in enumerate(TABLE.counts.tolist())]
    (tmp_path / "counts.csv").write_text("\n".join(["state,county,sex,age,n", *rows]) + "\n")

    def say(*options: str) -> dict[str, Any]:
        status = run(["plan", *options, "--json"])
        said = capsys.readouterr()
        assert status == 0, said.err
        return json.loads(said.out)

    return say


@pytest.mark.parametrize("face", ["shell", "spec"])
@pytest.mark.parametrize("name", TYPED)
def test_in_the_shell_and_in_a_spec(planned, tmp_path, face, name):
    typed = TYPED[name]
    for kept in [kept for kept, typed_name in CASES if typed_name == name]:
        if face == "spec":
            (tmp_path / "keepsum.toml").write_text(spec_of(kept, typed))
        said = planned(*([] if face == "spec" else options_of(kept, typed)))
        plan = ks.plan(keep=TABLE.keep(*KEPT[kept]), mechanism=mechanism_of(typed))
        assert said["mechanism"] == repr(plan.mechanism)  # the very noise that Python has for this number
        if of_every_change(typed):
            found = re.match(r"per-person (.*?) \(l[12] distance", said["person"]["reading"])
            assert found is not None, said["person"]["reading"]
            assert found[1] == words_of(typed)


@pytest.mark.parametrize("name", ["epsilon", "epsilon and delta", "rho", "one attribute"])
def test_in_spark(name):
    """The plan by which Spark draws, in groups of cells."""
    typed = TYPED[name]
    axes = {axis: DOMAIN.axis(axis).labels for axis in ("sex", "age")} | {"state": ["IL", "WI"], "county": COUNTIES}
    declared = Declared.of(["state", "county", "sex", "age"], "n", axes, {"county": "state"}, None)
    for kept in ("nothing", "the grand total", "a hierarchy"):
        check(asked(declared.plan(KEPT[kept], mechanism_of(typed))), typed)


@pytest.mark.parametrize("records", [None, Records("who", 3), Records(None, 1), Records()])
@pytest.mark.parametrize("name", ["epsilon", "epsilon, l2", "epsilon and delta", "rho"])
def test_with_records(records, name):
    """Of a person with all counted records; or of a record, and then every sentence says so."""
    plan = compile_plan(TABLE.keep("county", "sex"), mechanism_of(TYPED[name]), records=records)
    check(plan.guarantee.person_loss, TYPED[name])
    subject = "record" if records == Records() else "person"
    assert plan.guarantee.person_words == f"per-{subject} {words_of(TYPED[name])}"


def test_the_comparison_can_fail():
    """Per unit of distance the same number is another loss, and the words say that it is not one person's."""
    plan = ks.plan(TABLE, keep=["county"], mechanism=ks.Laplace.per_unit("1"))
    with pytest.raises(AssertionError):
        check(plan.guarantee.person_loss, TYPED["epsilon"])
    assert "per-person epsilon 4" in str(plan.guarantee)
    assert repr(plan).endswith(" kept, Laplace.per_unit(epsilon=1, norm='l1'))")


@pytest.mark.parametrize(
    "keep",
    [
        [[1, 1, 1, 0]],
        ks.Invariants.subsets(4, [[0, 1]]),
        ks.Invariants.subsets(4, []),
        ks.Invariants.margins(ks.Domain({"a": ["x"]} | {"b": ["y"]}), []),
        ks.Invariants.margins(
            ks.Domain({axis: range(4) for axis in "abc"}), [["a", "b"], ["b", "c"], ["a", "c"]]
        ),  # no bound is known
    ],
    ids=["a matrix", "subsets", "no totals of cells without names", "no attribute that can change", "not known"],
)
@pytest.mark.parametrize("typed", [ks.Laplace(1), ks.Laplace(1, "l2"), ks.Gaussian(1, "1e-6"), ks.Gaussian(rho=1)])
def test_where_no_loss_of_one_person_is_known_it_is_refused_and_not_stated(keep, typed):
    with pytest.raises(ks.PlanError, match="with per_unit") as caught:
        ks.plan(keep=keep, mechanism=typed)
    assert str(caught.value).count(". ") == 1  # what is wrong, and what to do
    unit = ks.plan(keep=keep, mechanism=ks.Gaussian.per_unit(rho=1))
    stated = f"{unit.guarantee} {unit.guarantee.person_words} {unit!r}"
    assert "per-person epsilon" not in stated
    assert "per-person rho" not in stated
    assert "per-person loss not stated" in stated
    assert (unit.person, unit.guarantee.person_loss, unit.guarantee.person_rho) == (None, None, None)
    assert "no per-person loss is stated" in unit.explain()


def test_nothing_kept_is_for_a_changed_attribute_and_one_person_more_is_a_detail():
    plan = ks.plan(TABLE, keep=[], mechanism=ks.Laplace(1))
    assert (plan.person_distance, plan.guarantee.unit_epsilon) == (2, Fraction(1, 2))
    assert "more or fewer" not in plan.explain()
    details = " ".join(plan.explain(details=True).split())
    assert "One person more or fewer in a cell under no total: epsilon 0.5 (l1 distance 1)" in details


def test_what_is_typed_is_what_is_found_and_divided():
    """``mechanism_for``, ``accuracy_curve`` and ``share_budget`` speak of one person, too."""
    keep = TABLE.keep("state")
    chosen = ks.mechanism_for(keep=keep, mechanism=ks.Laplace(1), margin=10)
    check(asked(ks.plan(keep=keep, mechanism=chosen)._record), {"epsilon": chosen.epsilon})
    curve = ks.accuracy_curve(keep=keep, mechanism=ks.Laplace(1), values=["0.5", "1"])
    assert curve.heading == "epsilon per person"
    some = ks.accuracy_curve(keep=keep, mechanism=ks.Laplace(1, attributes=["sex"]), values=["1"])
    assert some.heading == "epsilon for a change of sex"
    assert some.plot().axes[0].get_xlabel().startswith(some.heading)
    for point in curve.points:
        check(point.person, {"epsilon": point.value})
    shared = ks.share_budget(DOMAIN, ["county"], "0.8", keep=["state"])
    check(asked(ks.plan(keep=keep, mechanism=shared.mechanism)._record), {"epsilon": "0.8"})


@pytest.mark.parametrize(
    ("typed", "constructor"),
    [(ks.Laplace(1), "Laplace"), (ks.Gaussian(rho=1), "Gaussian"), (ks.Gaussian(1, "1e-6"), "Gaussian")],
)
def test_without_a_plan_a_loss_of_one_person_is_refused_and_not_taken_for_another(typed, constructor):
    """The paper's chain knows no person."""
    lattice = ks.Lattice([[1, 1, 1]])
    with pytest.raises(ks.InputError, match=rf"Use ks\.{constructor}\.per_unit, or plan\.mechanism\.$"):
        ks.mcmc.metropolis(lattice, typed, 10, 0.4, burn_in=1, thin=1, rng=ks.rng(seed=1))
