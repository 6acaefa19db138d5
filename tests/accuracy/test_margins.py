import numpy as np
import pytest

import keepsum as ks
from keepsum.accuracy import simulation
from keepsum.accuracy.simulation import estimated_margin
from keepsum.planning.selection import choice


def sums(size, epsilon):
    return ks.plan(keep=ks.Invariants.subsets(size, [range(size)]), mechanism=ks.Laplace.per_unit(epsilon=epsilon))


def test_computed_margins_are_those_of_the_noise_law():
    plan = ks.plan(keep=ks.Invariants.subsets(9, [[0, 1, 2], [3]]), mechanism=ks.Laplace.per_unit(epsilon=0.25))
    found = plan.accuracy(0.9)
    assert found.margins.tolist() == [0 if cell == 3 else plan.noise.interval(cell, 0.9)[1] for cell in range(9)]
    assert found.draws == 0
    assert not found.margins.flags.writeable


@pytest.mark.parametrize("size", [2, 5, 40])
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_simulated_margins_agree_with_computed_ones(size, level):
    """Never smaller (three standard errors), and larger by little."""
    plan = sums(size, 0.25)
    exact = plan.noise.interval(0, level)[1]
    simulated, _ = estimated_margin(np.abs(plan.sample(4000, rng=ks.rng(seed=8))), level)
    assert exact <= simulated <= exact + 2


def test_a_margin_from_too_few_draws_would_be_seen():
    """The same check finds a margin that leaves no room for error: the plain quantile of few draws."""
    plan = sums(5, 0.25)
    exact = plan.noise.interval(0, 0.95)[1]
    noise = np.abs(plan.sample(40 * 200, rng=ks.rng(seed=9)).reshape(200, 40, 5))
    plain = [int(np.quantile(draws[:, 0], 0.95)) for draws in noise]
    ours = [estimated_margin(draws, 0.95)[0] for draws in noise]
    assert sum(margin < exact for margin in plain) > 50
    assert sum(margin < exact for margin in ours) <= 2


def test_overlapping_tables_hold_their_level(children):
    plan = ks.plan(children, keep=["county", "education"], mechanism=ks.Laplace.per_unit(epsilon=0.25))
    found = plan.accuracy()
    assert found.draws == 4000
    assert len(set(found.margins.tolist())) == 1  # all cells of a table are alike
    noise = np.abs(plan.sample(20_000, rng=ks.rng(seed=10)))
    assert (noise <= found.margins).mean(axis=0).min() >= 0.95
    assert (noise <= found.margins - 2).mean(axis=0).max() < 0.95


def test_regions_of_a_general_block_differ(circles):
    found = ks.plan(keep=circles, mechanism=ks.Laplace.per_unit(epsilon=0.25)).accuracy()
    noise = np.abs(
        ks.plan(keep=circles, mechanism=ks.Laplace.per_unit(epsilon=0.25)).sample(20_000, rng=ks.rng(seed=11))
    )
    assert (noise <= found.margins).mean(axis=0).min() >= 0.95
    assert "simulated draws" in str(found)
    assert "simulated draws" in found._repr_html_()


@pytest.mark.parametrize("level", [0, 1, -1, "95%", True, float("nan")])
def test_bad_levels(level):
    with pytest.raises(ks.InputError, match="Level must lie between 0 and 1"):
        sums(3, 1).accuracy(level)


def test_margins_are_simulated_once(children, monkeypatch):
    """Not for every release, and not again for other levels, queries, sums or frames."""
    simulated = []
    real = simulation.simulate_into
    monkeypatch.setattr(simulation, "simulate_into", lambda *args: simulated.append(1) or real(*args))
    plan = ks.plan(children, keep=["county", "education"], mechanism=ks.Laplace.per_unit(epsilon=1))
    release = plan.release(children)
    release.accuracy()
    release.accuracy(0.9, simultaneous=True)
    release.noise.interval({"county": "Alpha", "education": ["Low", "High"]})
    release.marginal(["county"]).accuracy()
    assert plan.accuracy() is not None
    assert len(simulated) == 1


def two_way(rows, columns):
    domain = ks.Domain({"a": list(map(str, range(rows))), "b": list(map(str, range(columns)))})
    return ks.plan(domain, keep=[["a"], ["b"]], mechanism=ks.Laplace.per_unit(epsilon=1))


def test_draws_are_as_many_as_take_half_a_second(monkeypatch):
    """By what draws are said to take, not by cells: sums over 660 draws of 102 x 5 cells were 14% too wide."""
    plan = two_way(102, 5)
    each = choice.SIMULATION_NANOSECONDS["column_splitting"] * plan.samplers[0].simulation_cost
    draws = plan.accuracy().draws
    assert draws >= 1500
    assert draws * each <= simulation.EFFORT < (draws + 1) * each
    assert plan.noise.law([1, 0, 0, 0, 0] * 51 + [0] * 255).draws == draws
    monkeypatch.setitem(choice.SIMULATION_NANOSECONDS, "column_splitting", 200)
    assert two_way(102, 5).accuracy().draws == simulation.EFFORT // (10 * each)
    assert two_way(4, 3).accuracy().draws == simulation.MOST_DRAWS


@pytest.mark.audit
def test_a_slow_chain_is_not_simulated():
    domain = ks.Domain({axis: list("12345") for axis in "abc"})
    kept = ks.Invariants.margins(domain, [["a", "b"], ["a", "c"], ["b", "c"]])
    plan = ks.plan(keep=kept, mechanism=ks.Laplace.per_unit(epsilon=1))
    assert plan.samplers[0].chain is not None
    assert plan.accuracy().basis == "conservative"


def test_the_error_of_simulated_margins_is_that_of_their_level(children):
    """Over many other simulations, the share beyond the margin strays by about the stated error."""
    plan = ks.plan(children, keep=["county", "education"], mechanism=ks.Laplace.per_unit(epsilon="1/4"))
    found = plan.accuracy(0.9)
    shares = (np.abs(plan.sample(50 * found.draws, rng=ks.rng(seed=12))) > found.margins).mean(axis=1)
    strays = shares.reshape(50, -1).mean(axis=1).std()
    assert 0.6 < found.error / strays < 1.6
    assert f"{found.draws:,} simulated draws with" in str(found)
    assert found.basis == "estimated"


def test_bounds_where_simulating_takes_long(children, monkeypatch):
    monkeypatch.setattr(simulation, "MOST_EFFORT", 1)
    kept = children.keep("county", "education")
    for mechanism in (ks.Laplace.per_unit(epsilon="1/4"), ks.Gaussian(sigma=4)):
        plan = ks.plan(keep=kept, mechanism=mechanism)
        found = plan.accuracy()
        noise = np.abs(plan.sample(5_000, rng=ks.rng(seed=13)))
        assert (found.basis, found.draws, found.error) == ("conservative", 0, 0.0)
        assert (noise <= found.margins).mean() >= 0.95
        assert found.margins[0] <= 2.5 * np.quantile(noise, 0.95)
        assert "proved bound" in str(found)
        patient = plan.accuracy(patient=True)
        assert patient.basis == "estimated"
        assert (patient.margins <= found.margins).all()
        release = plan.release(children)
        assert release.certificate.accuracy.conservative
        assert ks.Certificate.from_json(release.certificate.to_json()) == release.certificate
    estimated = ks.plan(keep=kept, mechanism=ks.Laplace.per_unit(epsilon="1/4", norm="l2")).accuracy()
    assert estimated.basis == "estimated"  # there is no bound


def test_frames(children):
    plan = ks.plan(children, keep=["county", "education"], mechanism=ks.Laplace.per_unit(epsilon=1))
    found = plan.accuracy()
    for backend in ("pandas", "polars", "pyarrow"):
        frame = found.to_frame(backend)
        columns = frame.column_names if backend == "pyarrow" else list(frame.columns)
        assert columns == ["county", "education", "margin"]
        assert len(frame) == 16
    assert found.to_frame("pandas")["margin"].tolist() == found.margins.tolist()
    with pytest.raises(ks.InputError, match="library must be named"):
        found.to_frame()
    unnamed = (
        ks.plan(keep=ks.Invariants.subsets(3, [range(3)]), mechanism=ks.Laplace.per_unit(epsilon=1))
        .accuracy()
        .to_frame("polars")
    )
    assert unnamed.columns == ["cell", "margin"]
    clash = ks.Domain({"margin": ["x", "y"]})
    named = ks.plan(clash, keep=[[]], mechanism=ks.Laplace.per_unit(epsilon=1)).accuracy().to_frame("polars")
    assert named.columns == ["margin", "margin_"]


def test_a_release_as_a_frame_with_intervals(children):
    frame = children.to_frame("polars")
    table = ks.Table.from_frame(frame, axes=["county", "education"], count="count", domain=children.domain)
    release = ks.release(table, keep=[[]], mechanism=ks.Laplace.per_unit(epsilon=1), rng=ks.rng(seed=5))
    found = release.to_frame(level=0.9)  # of the caller's own kind
    assert found.columns == ["county", "education", "count", "count_low", "count_high"]
    for k in (0, 7, 15):
        assert (found["count_low"][k], found["count_high"][k]) == release.interval(k, 0.9)
    assert release.to_frame().columns == ["county", "education", "count"]
    nearest = ks.postprocess.nonnegative(release)
    assert nearest.to_frame(level=0.9)["count"].to_list() == release.table.counts.tolist()  # unbiased
    wide = release.to_frame(level=0.9, simultaneous=True)
    assert (wide["count_high"] >= found["count_high"]).all()
