"""How the releases in this folder were made: ``python tests/certificates/make.py NAME`` adds one, and changes none."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

import keepsum as ks
from keepsum.releasing.canonical import make_keys

HERE = Path(__file__).parent


def counts(*shape: int) -> np.ndarray:
    """Made-up counts."""
    return np.random.default_rng(2026).integers(5, 200, size=shape)


def grid(*shape: int) -> ks.Table:
    axes = {name: [f"{name} {k}" for k in range(n)] for name, n in zip(("age", "place", "work"), shape, strict=False)}
    return ks.Table.from_array(counts(*shape), axes=axes, count="people")


def margins() -> ks.Release:
    """l1 Laplace noise with both margins and the grand total kept: exact rejection, simulated margins of error."""
    return ks.release(grid(4, 5), keep=["age", "place", []], mechanism=ks.Laplace.per_unit(epsilon=0.25))


def hierarchy() -> ks.Release:
    """Counties in states, one of them alone and so pinned; a loss per person; computed margins of error."""
    domain = ks.Domain(
        {"state": ["IL", "WI", "DC"], "county": {"IL": ["Cook", "Lake", "Will"], "WI": ["Dane", "Lake"], "DC": ["DC"]}},
        within={"county": "state"},
    )
    table = ks.Table.from_array([500, 80, 3, 0, 2, 60], axes=domain, count="people")
    return ks.release(table, keep=["state", []], mechanism=ks.Laplace(epsilon=1), accept_pinned=["state=DC, county=DC"])


def focus() -> ks.Release:
    """A focus on states and counties, with the grand total kept: nested totals, a loss per person and its levels."""
    domain = ks.Domain(
        {"state": ["IL", "WI", "DC"], "county": {"IL": ["Cook", "Lake", "Will"], "WI": ["Dane", "Lake"], "DC": ["DC"]},
         "sex": ["f", "m"]},
        within={"county": "state"},
    )  # fmt: skip
    table = ks.Table.from_array(counts(12), axes=domain, count="people")
    mechanism = ks.Laplace(epsilon=1, focus={"state": 1, "county": 1}, cell_share=3)
    return ks.release(table, keep=[[]], mechanism=mechanism)


def crossed() -> ks.Release:
    """A focus on both margins of a table with the grand total kept, and margins of error that are simulated."""
    return ks.release(
        grid(4, 3, 2), keep=[[]], mechanism=ks.Laplace.per_unit(epsilon="0.5", focus={"age": "0.1", "place": "0.2"})
    )


def gaussian() -> ks.Release:
    """Gaussian noise for an epsilon and a delta, under two-way margins of a cube."""
    keep = [["age", "place"], ["age", "work"], ["place", "work"]]
    return ks.release(grid(3, 3, 3), keep=keep, mechanism=ks.Gaussian.per_unit(epsilon=0.5, delta="1e-6"))


def person() -> ks.Release:
    """Gaussian noise for the epsilon and delta of one person, by lines, under both margins."""
    return ks.release(grid(4, 5), keep=["age", "place"], mechanism=ks.Gaussian(1, "1e-6"))


def person_focus() -> ks.Release:
    """The same with a focus on one margin; the loss is of one attribute."""
    mechanism = ks.Gaussian(1, "1e-6", attributes=["work"], focus={"age": 1})
    return ks.release(grid(3, 3, 2), keep=[[]], mechanism=mechanism)


def per_unit() -> ks.Release:
    """Gaussian noise for an epsilon and a delta per unit of distance, by lines."""
    return ks.release(grid(4, 5), keep=["age"], mechanism=ks.Gaussian.per_unit(epsilon=0.5, delta="1e-6"))


def tight() -> ks.Release:
    """Gaussian noise with a sigma that depends on the lattice."""
    return ks.release(
        grid(4, 5),
        keep=["age", "place"],
        mechanism=ks.Gaussian.per_unit(epsilon=0.5, delta="1e-6", calibration="tight"),
    )


def zcdp() -> ks.Release:
    """Gaussian noise for a rho, under one margin."""
    return ks.release(grid(4, 5), keep=["age"], mechanism=ks.Gaussian.per_unit(rho="1/50"))


def l2_laplace() -> ks.Release:
    """l2 Laplace noise: one random width for all blocks."""
    return ks.release(grid(4, 5), keep=["age", "place"], mechanism=ks.Laplace.per_unit(epsilon="1/3", norm="l2"))


def attributes() -> ks.Release:
    """A loss per person for a change of one attribute to some other value."""
    mechanism = ks.Laplace(epsilon=1, attributes=["work"], to="some other value")
    return ks.release(grid(3, 4, 2), keep=[["age", "work"]], mechanism=mechanism)


def rounded() -> ks.Release:
    """Rejection in floating-point numbers."""
    keep = [["age", "place"], ["age", "work"], ["place", "work"]]
    return ks.release(grid(4, 4, 4), keep=keep, mechanism=ks.Laplace.per_unit(epsilon=1), accept_delta="0.001")


def chains() -> ks.Release:
    """Coupled chains and what they showed, with an accepted delta."""
    keep = [["age", "place"], ["age", "work"], ["place", "work"]]
    return ks.release(grid(4, 4, 4), keep=keep, mechanism=ks.Laplace.per_unit(epsilon=0.5), accept_delta="0.99")


def invariants() -> ks.Release:
    """Subsets and weighted totals in a file, one total beyond 2^53; structural zeros, whole numbers as labels."""
    domain = ks.Domain({"age": [5, 15, 25, 35], "sex": ["f", "m", "x"]}).without({"age": 5, "sex": "x"})
    values = np.arange(11, dtype=np.int64) * 7 + 20
    values[3] = 2**53 + 1
    table = ks.Table.from_array(values, axes=domain)
    files = ks.Invariants.subsets(11, [[0, 1, 2], [2, 3, 4]], ["young", "middle"])
    files += ks.Invariants.matrix([[0, 0, 0, 0, 0, 1, 2, 1, 0, 0, 0]], ["weighted"])
    return ks.plan(keep=table.keep("sex") + files.over(domain), mechanism=ks.Laplace.per_unit(epsilon=0.5)).release(
        table
    )


def signed() -> ks.Release:
    """A signature, to be verified with the public key beside it; the order of the rows is declared public."""
    lines = [f"{place},{sex},{people}" for place, sex, people in zip("yyxx", "fmfm", (30, 40, 50, 60), strict=True)]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "people.csv"
        file.write_text("\n".join(["place,sex,people", *lines]) + "\n", encoding="utf-8")
        table = ks.read_table(file, count="people", domain={"sex": ["f", "m"]}, keep_order=True)
    return ks.release(table, keep=["sex"], mechanism=ks.Laplace.per_unit(epsilon=0.5))


def sparse() -> ks.Table:
    """A table of few people, most of whose released counts are near 0."""
    values = np.random.default_rng(2026).integers(0, 60, size=(6, 7))
    axes = {"age": [f"age {k}" for k in range(6)], "place": [f"place {k}" for k in range(7)]}
    return ks.Table.from_array(np.where(values > 50, values, 0), axes=axes, count="people")


def nonnegative() -> ks.Release:
    """Without negative counts in l1, with both margins kept: the table is determined."""
    return ks.postprocess.nonnegative(
        ks.release(sparse(), keep=["age", "place"], mechanism=ks.Laplace.per_unit(epsilon=0.5))
    )


def nonnegative_l2() -> ks.Release:
    """Without negative counts in l2, under one margin."""
    return ks.postprocess.nonnegative(
        ks.release(sparse(), keep=["age"], mechanism=ks.Laplace.per_unit(epsilon=0.5)), norm="l2"
    )


def nonnegative_overlapping() -> ks.Release:
    """Without negative counts under overlapping totals: only the distance is determined."""
    table = sparse()
    keep = ks.Invariants.subsets(42, [range(20), range(10, 30), [*range(25, 42), *range(5)]]).over(table.domain)
    return ks.postprocess.nonnegative(ks.plan(keep=keep, mechanism=ks.Laplace.per_unit(epsilon=0.5)).release(table))


def records() -> ks.Release:
    """Records of persons, of whom at most two are counted each; ages cut into bins."""
    people = pa.table(
        {
            "person": [k // 3 for k in range(300)],
            "sex": ["f" if k % 7 < 4 else "m" for k in range(300)],
            "age": [(37 * k) % 90 for k in range(300)],
        }
    )
    table = ks.tabulate(
        people,
        ["sex", "age"],
        {"sex": ["f", "m"]},
        bins={"age": [0, 18, 65, None]},
        unit="person",
        max_rows_per_unit=2,
    )
    return ks.release(table, keep=["sex"], mechanism=ks.Laplace(epsilon=2))


def records_alone() -> ks.Release:
    """Records without a unit: the loss is per record."""
    people = pa.table({"sex": ["f", "m"] * 60, "race": ["a", "b", None] * 40})
    domain = {"sex": ["f", "m"], "race": ["a", "b", "unknown"]}
    table = ks.tabulate(people, ["sex", "race"], domain, missing={"race": "unknown"})
    return ks.release(table, keep=["sex"], mechanism=ks.Gaussian.per_unit(rho="0.1"))


def sdmx() -> ks.Release:
    """An SDMX-CSV file with attributes, which the certificate states."""
    rows = [
        f"NSI:POP(1.0),{sex},{age},{people},A,C,PS" for sex in "FM" for age, people in (("Y0T14", 30), ("Y_GE15", 70))
    ]
    header = "DATAFLOW,SEX,AGE,OBS_VALUE,OBS_STATUS,CONF_STATUS,UNIT_MEASURE"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "people.csv"
        file.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
        domain = {"SEX": ["F", "M"], "AGE": ["Y0T14", "Y_GE15"]}
        table = ks.read_table(file, count="OBS_VALUE", domain=domain)
    return ks.release(table, keep=["SEX"], mechanism=ks.Laplace.per_unit(epsilon=0.5))


SAMPLES = {
    made.__name__: made
    for made in (
        margins,
        hierarchy,
        focus,
        crossed,
        gaussian,
        person,
        person_focus,
        per_unit,
        tight,
        zcdp,
        l2_laplace,
        attributes,
        rounded,
        chains,
        invariants,
        signed,
        nonnegative,
        nonnegative_l2,
        nonnegative_overlapping,
        records,
        records_alone,
        sdmx,
    )
}


def add(name: str) -> None:
    """Make a release that is not there yet."""
    folder = HERE / name
    if folder.exists():
        sys.exit(f"{name} is there already, and is never made again.")
    release = SAMPLES[name]()
    if name != "signed":
        release.save(f"{folder}/")
        return
    with tempfile.TemporaryDirectory() as keys:
        make_keys(f"{keys}/key.pem", f"{keys}/key.pub.pem")
        release.save(f"{folder}/", sign_with=f"{keys}/key.pem")
        (folder / "key.pub.pem").write_bytes(Path(f"{keys}/key.pub.pem").read_bytes())


if __name__ == "__main__":
    for wanted in sys.argv[1:] or SAMPLES:
        add(wanted)
