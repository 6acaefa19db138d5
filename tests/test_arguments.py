"""Whatever is given for whatever parameter: one sentence of ours, without a count in it and without another error."""

import inspect
from collections.abc import Callable, Hashable
from fractions import Fraction
from functools import partial
from itertools import count
from pathlib import Path

import msgspec
import numpy as np
import pandas as pd
import pytest

import keepsum as ks
from keepsum import Certificate
from keepsum.releasing.canonical import make_keys, read_private_key, read_public_key

SECRET = 8675309  # a count that must stand in no message
COUNTS = [SECRET, SECRET + 2, SECRET + 6]
WRONG = {
    "object": object(),
    "class": int,
    "function": lambda *_: SECRET,
    "none": None,
    "true": True,
    "minus": -1,
    "huge": 10**5000,
    "half": 0.5,
    "nan": float("nan"),
    "text": "nowhere",
    "digits": str(SECRET),
    "row": f"Alpha,Low,{SECRET}",
    "surrogate": "\ud800",
    "null character": "a\0b",
    "bytes": b"\xff\xfe",
    "list": COUNTS,
    "ragged": [COUNTS, [SECRET]],
    "texts": [str(count) for count in COUNTS],
    "tuple": tuple(COUNTS),
    "set": set(COUNTS),
    "mapping": {"a": SECRET},
    "inverted": {SECRET: "a"},
    "array": np.array(COUNTS),
    "floats": np.array(COUNTS, dtype=float),
    "scalar": np.int64(-SECRET),
    "series": pd.Series(COUNTS),
    "frame": pd.DataFrame({"n": COUNTS}),
    "fraction": Fraction(-SECRET, 7),
    "complex": complex(SECRET),
}


# Numbers and short texts that are options, or names of files, may be repeated; what holds or names data may not.
OPTIONS = """
    epsilon delta rho sigma norm calibration level size threads pairs confidence steps a lag t max_steps burn_in thin
    chains n p x length force total refined show_progress allow_seeded patient backend method first factor tolerance
    most index row cell path private max_rows_per_unit table source public sign_with certificate totals key
    encoding sheet structure ledger budget per_person simultaneous constant margin of cell_share
    cell_weight
""".split()  # noqa: SIM905


def check_message(error: BaseException, name: str = "", wrong: object = None) -> None:
    """An error of ours, by itself, that tells no count and does nothing to a terminal."""
    assert isinstance(error, ks.KeepsumError), repr(error)
    assert isinstance(error.__context__, (type(None), OSError))  # which holds the name of a file
    assert error.__cause__ is None
    if name not in OPTIONS or not isinstance(wrong, (str, np.integer, Fraction)):
        assert str(SECRET) not in str(error)
    assert str(error).isprintable()
    assert str(error).endswith((".", "?")), str(error)


def charged(ledger, plan, dataset) -> None:
    with ledger.charged(plan, dataset):
        pass


class Calls:
    """Calls of the public face that work, from small objects; each is then made with one argument wrong."""

    def __init__(self, folder) -> None:
        domain = ks.Domain({"a": ["x", "y"], "b": ["p", "q"]})
        frame = pd.DataFrame({"a": ["x", "x", "y", "y"], "b": ["p", "q", "p", "q"], "n": [1, 2, 3, 4]})
        file = folder / "table.csv"
        frame.to_csv(file, index=False)
        table = ks.Table.from_frame(frame, count="n", domain=domain)
        keep = table.keep("a")
        laplace, lattice = ks.Laplace.per_unit(epsilon=1), ks.Lattice([[1, 1, 1]])
        plan = ks.plan(keep=keep, mechanism=laplace)
        released = plan.release(table, rng=ks.rng(seed=1))
        plan_l2 = ks.plan(
            keep=ks.Invariants.subsets(3, [range(3)]), mechanism=ks.Laplace.per_unit(epsilon=1, norm="l2")
        )
        make_keys(folder / "key.pem", folder / "key.pub.pem")
        out = released.save(folder / "out.csv", sign_with=folder / "key.pem")
        times = ks.mcmc.MeetingTimes([12, 15, 20], lag=10)
        draws = np.arange(16.0).reshape(2, 8) % 5
        source = ks.rng(seed=1)
        numbers = ks.mcmc.Draws(source.stream())
        certificate = released.certificate.to_json()
        ledger = ks.Ledger.create(folder / "ledger.db", budget=ks.Budget.per_unit(10**6, "1e-6"))
        datasets = ks.Ledger.create(folder / "datasets.db", budget=1)
        budgets = ks.Ledger.create(folder / "budgets.db", budget=1)
        numbered = count()
        self.all: list[tuple[Callable, dict]] = [
            (
                ks.read_table,
                {"path": file, "count": "n", "axes": ["a", "b"], "within": {}, "domain": domain, "drop": []}
                | {"sheet": None, "encoding": None, "structure": None, "flags": {}},
            ),
            (
                ks.tabulate,
                {"source": frame, "by": ["a", "b"], "domain": domain, "within": None, "bins": {}, "missing": {}}
                | {"unit": None, "max_rows_per_unit": None, "table": None, "count": "n"},
            ),
            (lambda edges: ks.tabulate(frame, by="n", bins={"n": edges}), {"edges": [0, None]}),
            (lambda label: ks.tabulate(frame, by="n", bins={"n": [0, None]}, missing={"n": label}), {"label": "?"}),
            (
                lambda unit: ks.tabulate(frame, by="a", domain={"a": ["x", "y"]}, unit=unit, max_rows_per_unit=2),
                {"unit": "n"},
            ),
            (ks.Table, {"domain": domain, "counts": table.counts.copy(), "count": "n"}),
            (ks.Table.from_array, {"counts": [[1, 2], [3, 4]], "axes": domain, "within": {}, "count": "n"}),
            (ks.Table.from_frame, {"frame": frame, "axes": None, "count": "n", "within": None, "domain": domain}),
            (table.keep, {"margins": "a", "total": True}),
            (table.to_frame, {"backend": "pandas"}),
            (ks.Domain, {"categories": {"a": ["x"], "b": {"x": ["p"]}}, "within": {"b": "a"}}),
            (lambda labels: ks.Domain({"a": labels}), {"labels": ["x", "y"]}),
            (lambda name: ks.Domain({name: ["x"]}) if isinstance(name, Hashable) else None, {"name": "a"}),
            (lambda pairs: ks.Domain({"a": ["x"], "b": pairs}, {"b": "a"}), {"pairs": [("x", "p")]}),
            (domain.axis, {"name": "a"}),
            (domain.categories, {"name": "a"}),
            (domain.codes, {"name": "a"}),
            (domain.cell, {"index": 0}),
            (domain.name, {"index": 0}),
            (domain.index, {"cell": {"a": "x", "b": "p"}}),
            (lambda label: domain.index({"a": label, "b": "p"}), {"label": "x"}),
            (domain.project, {"axes": ["a"]}),
            (domain.marginal_index, {"axes": ["a"]}),
            (domain.closure, {"axes": ["a"]}),
            (domain.without, {"combinations": {"a": "x"}}),
            (lambda label: domain.without({"a": label}), {"label": "x"}),
            (ks.Invariants.margins, {"domain": domain, "margins": [["a"]]}),
            (ks.Invariants.subsets, {"size": 4, "subsets": [[0, 1]], "names": ["s"]}),
            (lambda cells: ks.Invariants.subsets(4, [cells]), {"cells": [0, 1]}),
            (ks.Invariants.matrix, {"A": [[1, 1, 1, 1]], "names": ["s"]}),
            (keep.over, {"domain": domain}),
            (keep.name, {"row": 0}),
            (keep.cell_name, {"index": 0}),
            (ks.Invariants.subsets(4, [[0]]).cell_name, {"index": 0}),
            (keep.totals, {"counts": table}),
            (keep.holds, {"a": table, "b": [1, 2, 3, 4]}),
            (keep.broken, {"a": table, "b": [1, 2, 3, 4]}),
            (ks.Lattice, {"A": [[1, 1]]}),
            (lattice.contains, {"z": [1, -1, 0]}),
            (ks.Laplace.per_unit, {"epsilon": 1, "norm": "l1", "focus": {"a": 1}}),
            (ks.Laplace, {"epsilon": 1, "norm": "l1", "focus": {"a": 1}, "cell_share": 2}),
            (ks.Gaussian.per_unit, {"epsilon": 1, "delta": "1e-6", "calibration": "zcdp"}),
            (lambda rho: ks.Gaussian.per_unit(rho=rho), {"rho": 1}),
            (lambda **named: ks.Gaussian.per_unit(rho=1, **named), {"focus": {"a": 1}}),
            (lambda **named: ks.Gaussian(rho=1, **named), {"focus": {"a": 1}, "cell_share": 2}),
            (lambda sigma: ks.Gaussian(sigma=sigma), {"sigma": 1}),
            (
                ks.OwnNoise,
                {"mechanism": laplace, "draw": lambda *_: None, "name": "mine", "version": "1"}
                | {"law": "z = 0", "parameters": {"a": 1}},
            ),
            (ks.plan, {"table": table, "keep": ["a"], "mechanism": laplace, "max_rows_per_unit": 1}),
            (ks.plan, {"keep": keep, "mechanism": laplace}),
            (plan.accuracy, {"level": 0.95, "simultaneous": False, "patient": False}),
            (plan.accuracy().to_frame, {"backend": "pandas"}),
            (
                ks.accuracy_curve,
                {"table": domain, "keep": "a", "mechanism": laplace, "values": [1], "level": 0.95}
                | {"max_rows_per_unit": 1},
            ),
            (ks.accuracy_curve(keep=keep, mechanism=laplace, values=[1]).to_frame, {"backend": "pandas"}),
            (
                ks.mechanism_for,
                {"table": domain, "keep": keep, "mechanism": laplace, "margin": 9, "level": 0.95, "of": "typical"}
                | {"max_rows_per_unit": 1},
            ),
            (
                ks.share_budget,
                {"table": domain, "levels": ["a"], "epsilon": 1, "weights": {"a": 2}, "cell_weight": 1}
                | {"keep": [[]], "max_rows_per_unit": 1},
            ),
            (lambda axes: ks.share_budget(domain, [axes], 1), {"axes": ("a",)}),
            (ks.share_budget(domain, ["a"], 1).curve, {"level": 0}),
            (ks.series_epsilon, {"rhos": ["0.01"], "delta": "1e-6"}),
            (lambda rho: ks.series_epsilon([rho], "1e-6"), {"rho": "0.01"}),
            (plan.certify, {"pairs": None, "confidence": 0.95, "threads": 1, "progress": None}),
            (plan.release, {"table": table, "accept_pinned": (), "rng": source, "threads": 1}),
            (plan.sample, {"size": 2, "rng": source, "threads": 1}),
            (plan_l2.tail_bound, {"length": 20.0}),
            (plan.noise.variance, {"query": 0}),
            (plan.noise.interval, {"query": {"a": "x", "b": "p"}, "level": 0.95}),
            (ks.release, {"table": table, "keep": ["a"], "mechanism": laplace, "accept_pinned": (), "rng": source}),
            (released.accuracy, {"level": 0.95, "simultaneous": False, "patient": False}),
            (released.to_frame, {"backend": "pandas", "level": 0.95, "simultaneous": False}),
            (released.interval, {"query": 0, "level": 0.95, "simultaneous": False}),
            (released.difference, {"first": 0, "second": {"a": "y"}, "level": 0.95}),
            (released.ratio, {"numerator": 0, "denominator": {"a": "y"}, "level": 0.95}),
            (released.share, {"part": 0, "whole": {"a": "x"}, "level": 0.95}),
            (released.noise.log_pmf, {"noise": [1, -1, 0, 0], "constant": False}),
            (released.noise.log_likelihood, {"released": [1, 2, 3, 4], "log_pmf": lambda counts: -1.0 - counts}),
            (released.marginal, {"axes": ["a"]}),
            (released.marginal(["b"]).accuracy, {"level": 0.95, "simultaneous": False}),
            (released.marginal(["b"]).intervals, {"level": 0.95, "simultaneous": False}),
            (released.marginal(["a"]).to_frame, {"backend": "pandas", "level": 0.95, "simultaneous": False}),
            (released.marginal(["a"]).note_at, {"level": 0.95, "simultaneous": False}),
            (
                released.marginal(["a"]).save,
                {"path": folder / "sums.csv", "level": 0.95, "simultaneous": False, "force": True},
            ),
            (released.save, {"path": folder / "again.csv", "sign_with": None, "force": True}),
            (released.to_html, {"level": 0.95}),
            (released.report, {"path": folder / "report.html", "level": 0.95, "force": True}),
            (lambda key: released.save(folder / "again.csv", sign_with=key, force=True), {"key": folder / "key.pem"}),
            (lambda path: ks.verify(path), {"path": out}),
            (lambda path: ks.read_release(path, allow_seeded=True), {"path": out}),
            (partial(ks.read_release, out), {"certificate": None, "key": None, "allow_seeded": True, "patient": False}),
            (ks.postprocess.nonnegative, {"release": released, "norm": "l1"}),
            (partial(ks.verify, out), {"certificate": None, "totals": None, "key": None, "allow_seeded": True}),
            (partial(ks.verify, out, allow_seeded=True), {"patient": False}),
            (Certificate.from_json, {"data": certificate}),
            (released.certificate.plan, {"invariants": None}),
            (read_private_key, {"path": folder / "key.pem"}),
            (read_public_key, {"path": folder / "key.pub.pem"}),
            (make_keys, {"private": folder / "k.pem", "public": folder / "k.pub.pem", "force": True}),
            (ks.Budget, {"epsilon": 1, "delta": "1e-6"}),
            (lambda rho: ks.Budget.per_unit(rho=rho), {"rho": 1}),
            (ks.Ledger, {"store": ledger._store}),
            (ks.Ledger.open, {"path": folder / "ledger.db"}),
            (
                lambda path, **named: (
                    ks.Ledger.create(path.with_name(f"{next(numbered)}.db"), **named)
                    if isinstance(path, Path)
                    else ks.Ledger.create(path, **named)
                ),
                {"path": folder / "new.db", "budget": 1, "dataset": "data", "domain": domain, "note": None},
            ),
            (ledger.standing, {"dataset": "data"}),
            (ledger.spends, {"dataset": "data"}),
            (ledger.dataset, {"name": "data"}),
            (
                lambda name, budget, domain: datasets.add_dataset(
                    f"{name}{next(numbered)}" if isinstance(name, str) else name, budget, domain
                ),
                {"name": "more", "budget": 1, "domain": domain},
            ),
            (budgets.set_budget, {"name": "data", "budget": 10**6}),
            (ledger.assess, {"plans": [plan], "dataset": "data"}),
            (lambda plan, dataset: charged(ledger, plan, dataset), {"plan": plan, "dataset": "data"}),
            (
                lambda certificate, dataset, invariants: ledger.import_release(
                    msgspec.structs.replace(certificate._record, released=f"{next(numbered) + 2000}-01-01T00:00:00Z")
                    if isinstance(certificate, Certificate)
                    else certificate,
                    dataset,
                    invariants,
                ),
                {"certificate": released.certificate, "dataset": "data", "invariants": None},
            ),
            (lambda against: ledger.check(against), {"against": []}),
            (lambda certificate: ledger.check([certificate]), {"certificate": released.certificate}),
            (partial(plan.release, table), {"ledger": ledger, "dataset": "data"}),
            (
                partial(ks.release, table, keep=["a"], mechanism=laplace),
                {"ledger": folder / "ledger.db", "dataset": "data"},
            ),
            (ks.rng, {"seed": 1}),
            (source.below, {"n": 7}),
            (source.bernoulli, {"p": Fraction(1, 2)}),
            (source.bernoulli_exp, {"x": Fraction(1, 2)}),
            (ks.baselines.projected_laplace, {"invariants": keep, "epsilon": 1, "size": 2, "rng": source}),
            (
                ks.baselines.topdown_like,
                {"counts": [1, 2, 3, 4], "invariants": keep, "epsilon": 1, "size": 2, "rng": source}
                | {"focus": {("a", "b"): 1}},
            ),
            (
                ks.mcmc.metropolis,
                {"lattice": lattice, "mechanism": laplace, "steps": 4, "a": 0.4, "start": None, "burn_in": 0, "thin": 1}
                | {"chains": 1, "basis": None, "rng": source, "threads": 1},
            ),
            (
                ks.mcmc.meeting_times,
                {"lattice": lattice, "mechanism": laplace, "a": 0.4, "lag": 5, "pairs": 2, "max_steps": 1000}
                | {"start": None, "basis": None, "rng": source, "threads": 1, "show_progress": False},
            ),
            (
                ks.mcmc.meeting_times_of,
                {"kernel": ks.mcmc.LatticeMetropolis(lattice, laplace, 0.4), "lag": 2, "pairs": 2, "max_steps": 50}
                | {"rng": source, "threads": 1, "show_progress": False},
            ),
            (ks.mcmc.LatticeMetropolis, {"lattice": lattice, "mechanism": laplace, "a": 0.4, "basis": None}),
            (ks.mcmc.MeetingTimes, {"times": [12, 15], "lag": 10, "censored": [False, False], "max_steps": 20}),
            (ks.mcmc.tv_upper_bound, {"times": times, "lag": None, "t": 5, "confidence": 0.95, "refined": False}),
            (lambda censored: ks.mcmc.tv_upper_bound([12], 10, censored=censored), {"censored": [False]}),
            (ks.mcmc.choose_lag, {"meet": lambda lag: times, "first": 1, "factor": 2, "tolerance": 0.1, "most": 4}),
            (ks.mcmc.r_hat, {"draws": draws, "method": "rank"}),
            (ks.mcmc.effective_sample_size, {"draws": draws, "method": "bulk"}),
            (ks.mcmc.Draws, {"stream": source.stream()}),
            (numbers.random, {"size": 3}),
        ]


@pytest.fixture(scope="module")
def calls(tmp_path_factory) -> list[tuple[Callable, dict]]:
    return Calls(tmp_path_factory.mktemp("arguments")).all


def made(call: Callable, arguments: dict):
    """A call by name, but for what a function takes as a list of its own."""
    rest = [name for name, p in inspect.signature(call).parameters.items() if p.kind is p.VAR_POSITIONAL]
    return call(*(arguments[name] for name in rest), **{n: v for n, v in arguments.items() if n not in rest})


@pytest.mark.filterwarnings("ignore::keepsum.KeepsumWarning")
@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_a_wrong_argument_gets_one_sentence(calls, wrong, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # some texts are names of files
    for call, arguments in calls:
        for name in arguments:
            problem = caught(call, arguments | {name: wrong})
            if problem is not None:
                check_message(problem, name, wrong)


def caught(call: Callable, arguments: dict) -> BaseException | None:
    try:
        made(call, arguments)
    except BaseException as error:
        return error
    return None


def test_the_calls_work_as_they_stand(monkeypatch, tmp_path):
    """Else the test above would look at nothing but their first argument. It may leave files, so here are others."""
    monkeypatch.chdir(tmp_path)
    for call, arguments in Calls(tmp_path).all:
        if call is not ks.mcmc.choose_lag:  # whose meeting times here are always the same
            made(call, arguments)


def test_every_public_function_is_called(calls):
    """A new function of the public face gets a line above."""
    called = {getattr(call, "__func__", getattr(call, "func", call)) for call, _ in calls}
    faces = [(ks, ks.__all__), (ks.mcmc, ks.mcmc.__all__), (ks.baselines, ks.baselines.__all__)]
    faces.append((ks.postprocess, ks.postprocess.__all__))
    functions = {getattr(home, name) for home, names in faces for name in names}
    missing = {f.__name__ for f in functions if inspect.isfunction(f) and f not in called}
    assert missing <= {"plot_bound"}  # which needs matplotlib: tests/convergence/test_plot.py
