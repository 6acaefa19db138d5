"""Outcomes of pilots and their cache: the same plan with it and without it, and no entry that makes it claim more."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from fractions import Fraction

import msgspec
import numpy as np
import pytest

import keepsum as ks
from keepsum.lattice.structure import decompose
from keepsum.planning.selection import gaussian, general, l1
from keepsum.planning.selection.choice import Reason
from keepsum.planning.selection.general import Outcome, OutcomeStore, _digest, _Entry
from support import BY_MIXTURE, ROUNDED, cycle, margins, mostly_audit

NARROW = margins(5, 5), ks.Gaussian(sigma="0.5")
LIMITS = [("a", 1)]
CASES = {"rejection": ROUNDED, "chain": BY_MIXTURE, "narrow": NARROW}


@pytest.fixture(scope="module", autouse=True)
def nothing_for_exact_gaussians():
    """Narrow Gaussian noise is drawn by a chain where nothing may be spent on an exact draw."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("keepsum.planning.selection.gaussian.BUDGET", 1)
        yield


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("KEEPSUM_CACHE", str(tmp_path))
    return tmp_path / "plans"


def facts(plan):
    """All that a plan states of its samplers, and what its chain runs."""
    stated = []
    for choice in plan.samplers:
        names = {field.name for field in fields(choice)} - {"sampler", "cells", "chain"}
        chain = choice.chain
        run = () if chain is None else (chain.fingerprint(), chain.steps, chain.lag, chain.rounding)
        stated.append(({name: getattr(choice, name) for name in names}, choice.cells.tolist(), run))
    return stated, plan.explain(details=True)


def planned(case):
    return ks.plan(keep=case[0], mechanism=case[1])


def no_pilot(*_):
    raise AssertionError("a pilot was run")


@pytest.fixture(scope="module")
def without_cache(tmp_path_factory):
    """The facts of each case where nothing can be kept: a file stands where the folder would be."""
    (tmp_path_factory.getbasetemp() / "file").write_text("in the way")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KEEPSUM_CACHE", str(tmp_path_factory.getbasetemp() / "file"))
        return {name: facts(planned(case)) for name, case in CASES.items()}


@pytest.mark.audit
@pytest.mark.parametrize("name", CASES)
def test_a_plan_is_the_same_from_the_cache(name, folder, without_cache, monkeypatch):
    assert facts(planned(CASES[name])) == without_cache[name]
    (entry,) = folder.iterdir()
    pilots = ((general, "settle"), (l1, "_choose_exact"), (general, "tune"), (general, "_rejection"))
    for module, pilot in ((gaussian.NarrowProblem, "settle"),) if name == "narrow" else pilots:
        monkeypatch.setattr(module, pilot, no_pilot)
    assert facts(planned(CASES[name])) == without_cache[name]
    entry.unlink()
    with pytest.raises(AssertionError, match="a pilot was run"):
        facts(planned(CASES[name]))


def test_an_entry_has_no_label(folder):
    """Totals of the same form have one entry, whatever their cells are called."""
    for prefix in ("secret", "other"):
        axes = zip("abcd", (2, 3, 2, 3), strict=True)
        domain = ks.Domain({axis: [f"{prefix}{k}" for k in range(n)] for axis, n in axes})
        keep = ks.Invariants.margins(domain, [["a", "b"], ["b", "c"], ["c", "d"], ["d", "a"]])
        assert ks.plan(keep=keep, mechanism=ROUNDED[1]).samplers[0].method == "mixture_rejection"
    (entry,) = folder.iterdir()
    assert not any(word in entry.read_text() for word in ("secret", "other"))


def damaged(text):
    """Texts that are no entry of that name."""
    entry = json.loads(text)
    yield from (text[:cut] for cut in range(0, len(text), 40))
    yield "[" * 100_000
    yield '"\ud800"'
    for key, value in (("name", "0" * 64), ("digest", "0" * 64), ("outcome", None)):
        yield json.dumps({**entry, key: value})
    for key, value in (("steps", 1), ("log_cap", 0.5), ("tau", 0.05), ("method", None), ("lag", 5)):
        yield json.dumps({**entry, "outcome": {**entry["outcome"], key: value}})


def test_damaged_entries_are_left_aside(folder):
    _, _, store = block_store()
    outcome = Outcome("mixture_chain", (Reason("rarely_accepted", limit=9),), 0.1, 1.1, -3.5, 40, 7)
    store.write(outcome, LIMITS)
    (path,) = folder.iterdir()
    text = path.read_text()
    assert store.read(LIMITS) == outcome
    for wrong in damaged(text):
        path.write_bytes(wrong.encode("utf-8", "surrogatepass"))
        assert store.read(LIMITS) is None
    path.write_bytes(b"\xff\xfe")
    assert store.read(LIMITS) is None
    path.unlink()
    path.mkdir()
    assert store.read(LIMITS) is None
    store.write(outcome, LIMITS)


def test_an_entry_for_a_block_that_is_drawn_exactly_is_dropped(folder):
    """Another version may have run pilots for it: each plan would load the general sampler to look at the entry."""
    keep = margins(4, 4)
    _, _, store = block_store(epsilon="1/2", keep=keep)
    store.write(Outcome("mixture_chain", (), 0.1, 1.1, -3.5, 40, 7), LIMITS)
    assert store.has_entry
    (choice,) = ks.plan(keep=keep, mechanism=ks.Laplace.per_unit(epsilon="0.5")).samplers
    assert choice.exactness == "exact"
    assert not store.has_entry


@pytest.mark.parametrize(
    "change",
    [
        {"tau": 0.011},
        {"tau": float(np.nextafter(0.1, 1))},
        {"stretch": 0.5},
        {"log_cap": 1e9},
        {"steps": 0},
        {"steps": 10**11},
        {"lag": 0},
        {"lag": 10**6},
        {"reasons": (Reason("rarely_accepted", lowest="text of somebody"),)},
    ],
)
def test_what_pilots_cannot_have_chosen_is_left_aside(folder, change):
    """Even with the right name and hash."""
    _, _, store = block_store()
    outcome = Outcome("mixture_chain", (), 0.1, 1.1, -3.5, 40, 7)
    store.write(outcome, LIMITS)
    assert store.read(LIMITS) == outcome
    store.write(replace(outcome, **change), LIMITS)
    assert store.read(LIMITS) is None


def block_store(epsilon="1", keep=None, count=1, sizes=None):
    structure = decompose((keep or cycle(2, 3, 2, 3)).coefficients)
    (block,) = structure.blocks
    sizes = structure.sizes[block.regions] if sizes is None else sizes
    return block.system, sizes, OutcomeStore(f"laplace-l1 {Fraction(epsilon)}", block.system.matrix, sizes, count)


def test_what_an_entry_is_named_by(folder):
    plain = block_store()[2]._name
    assert block_store()[2]._name == plain
    _, sizes, _ = block_store()
    others = [
        block_store(epsilon="1.0000001"),
        block_store(keep=cycle(3, 2, 3, 2)),
        block_store(count=2),
        block_store(sizes=sizes + 1),
    ]
    assert len({plain, *(store._name for _, _, store in others)}) == 5


def forge(folder, **change):
    """Change the entry of the folder, with a hash that fits."""
    (path,) = folder.iterdir()
    entry = msgspec.json.decode(path.read_text(), type=_Entry)
    outcome = replace(entry.outcome, **change)
    path.write_bytes(msgspec.json.encode(_Entry(entry.name, outcome, _digest(entry.name, outcome))))


@pytest.mark.audit
def test_a_forged_chain_says_what_it_is(folder, monkeypatch):
    """One step, and a low cap: the certificate's figures are those of such a chain, measured."""
    monkeypatch.setattr("keepsum.convergence.observe.WEIGHTS", 2_000)  # or as many as the pairs see
    honest = planned(BY_MIXTURE)
    honest_choice = honest.samplers[0]
    forge(folder, steps=1, log_cap=-400.0)
    plan = planned(BY_MIXTURE)
    (choice,) = plan.samplers
    assert (choice.exactness, choice.steps, choice.chain.steps) == ("estimated", 1, 1)
    assert choice.proposals_per_step == 1.0 < honest_choice.proposals_per_step
    forged, measured = (some.certify(pairs=1000).convergence.error for some in (plan, honest))
    assert forged.distance > 10 * measured.distance
    assert forged.extrapolated > 100 * measured.extrapolated


def test_a_forged_threshold_is_proved_anew(folder):
    """Rejection is exact at every threshold: what is stated is the bound of the one that is used."""
    honest = planned(ROUNDED).samplers[0]
    forge(folder, tau=2.0)
    (choice,) = planned(ROUNDED).samplers
    assert choice.method == "mixture_rejection"
    assert choice.sampler.mixture.tau == 2.0
    assert choice.rounding == choice.sampler.rounding != honest.rounding
    assert choice.acceptance < honest.acceptance


@mostly_audit("method", ["gaussian_chain", "heat_bath_chain", "mixture_chain"])
def test_a_method_of_other_noise_or_no_bound(folder, method):
    """What cannot be made is settled again; what can be made is a chain, and says so."""
    planned(ROUNDED).samplers  # noqa: B018 - runs the pilots
    forge(folder, method=method, tau=0.1)
    (choice,) = planned(ROUNDED).samplers
    assert choice.exactness == ("rounded" if method == "gaussian_chain" else "estimated")


def test_two_at_once(folder):
    """Entries are replaced as a whole: a reader sees one or the other."""
    outcomes = [Outcome("heat_bath_chain", steps=steps) for steps in (7, 1234567)]
    store = block_store()[2]
    store.write(outcomes[0], LIMITS)

    def work(turn):
        store.write(outcomes[turn % 2], LIMITS)
        return block_store()[2].read(LIMITS)

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(work, range(40))) <= set(outcomes)
    assert len(list(folder.iterdir())) == 1


def test_an_entry_holds_under_its_own_limits_only(folder):
    assert planned(ROUNDED).samplers[0].exactness == "rounded"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(general, "BOUNDED", 0)
        assert planned(ROUNDED).samplers[0].exactness == "estimated"
    assert planned(ROUNDED).samplers[0].exactness == "rounded"
    store = block_store()[2]
    store.write(Outcome("heat_bath_chain"), LIMITS)
    assert store.read([("a", 2)]) is None
