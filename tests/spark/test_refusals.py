"""What is refused, with one sentence and before anything is spent."""

from __future__ import annotations

import sys

import pytest

import keepsum as ks
from keepsum import spark as kss
from keepsum.spark.session import use_this_python

DOMAIN = {"state": ["a", "b"], "county": {"a": ["x", "y"], "b": ["x"]}, "sex": ["f", "m"]}
AXES, WITHIN = ["state", "county", "sex"], {"county": "state"}
SCHEMA = "state string, county string, sex string, n long"
SETTING = {"${user.name}": ["a", "b"]}
GOOD = [("a", "x", "f", 3), ("b", "x", "m", 4)]


def release(df, tmp_path, count="n", keep=(("state",),), mechanism=None, **others):
    chosen = {"domain": DOMAIN, "within": WITHIN, "staging": tmp_path / "staging"} | others
    return kss.release(
        df, axes=AXES, count=count, keep=keep, mechanism=mechanism or ks.Laplace.per_unit(epsilon=1), **chosen
    )


@pytest.mark.parametrize(
    ("row", "schema", "match"),
    [
        (("a", "x", "f", 3), SCHEMA, "Each cell must have one row"),
        (("a", "z", "f", 3), SCHEMA, "'county' must be declared categories within its 'state'"),
        (("b", "y", "f", 3), SCHEMA, "'county' must be declared categories within its 'state'"),
        (("c", "x", "f", 3), SCHEMA, "'state' must be declared categories, but"),
        (("a", "y", None, 3), SCHEMA, "'sex' must not be missing"),
        (("a", "y", "", 3), SCHEMA, "'sex' must not be missing"),
        (("a", "y", "f", None), SCHEMA, "some are missing"),
        (("a", "y", "f", -98765), SCHEMA, "some are negative"),
        (("a", "y", "f", 2**62), SCHEMA, "do not fit 62 bits"),
        (("a", "y", "f", 2.5), SCHEMA.replace("n long", "n double"), "some have decimals"),
        (("a", "y", "f", float("nan")), SCHEMA.replace("n long", "n double"), "some are missing"),
        (("a", "y", "f", float("inf")), SCHEMA.replace("n long", "n double"), "do not fit 62 bits"),
    ],
)
def test_rows_that_are_not_as_declared(frame, tmp_path, row, schema, match):
    good = [(*labels, float(n)) for *labels, n in GOOD] if "double" in schema else GOOD
    ledger = ks.Ledger.create(tmp_path / "ledger.db", budget=ks.Budget.per_unit(10), dataset="people")
    with pytest.raises(ks.DataError, match=match) as caught:
        release(frame([*good, row], schema), tmp_path, ledger=ledger, dataset="people")
    assert "98765" not in str(caught.value)
    assert not ledger.spends("people")
    assert not (tmp_path / "staging").exists()


def test_bytes_that_are_no_text_are_not_declared(frame, tmp_path):
    from pyspark.sql import functions as f

    bad = frame(GOOD, SCHEMA).withColumn("sex", f.unhex(f.lit("66FF")).cast("string"))
    with pytest.raises(ks.DataError, match="'sex' must be declared categories"):
        release(bad, tmp_path)


@pytest.mark.parametrize("day", ["date'12020-01-31'", "date_add(date'0001-01-01', -400)", "date'2020-02-28'"])
def test_dates_that_are_not_declared(frame, tmp_path, day):
    from pyspark.sql import functions as f

    bad = frame(GOOD, SCHEMA).withColumn("sex", f.expr(day))
    domain = DOMAIN | {"sex": ["2020-01-31", "2020-02-01"]}
    with pytest.raises(ks.DataError, match="'sex' must be declared categories"):
        release(bad, tmp_path, domain=domain)


def test_dates_are_labels(frame, tmp_path):
    from pyspark.sql import functions as f

    days = frame(GOOD, SCHEMA).withColumn("sex", f.expr("if(sex = 'f', date'2020-01-31', date'0190-02-01')"))
    released = release(days, tmp_path, domain=DOMAIN | {"sex": ["2020-01-31", "0190-02-01"]})
    assert {row.sex for row in released.table.collect()} == {"2020-01-31", "0190-02-01"}


@pytest.mark.parametrize("name", ["a file", "a file/below"])
def test_a_staging_folder_that_cannot_be_used_is_told_before_the_charge(frame, tmp_path, name):
    (tmp_path / "a file").write_text("mine")
    ledger = ks.Ledger.create(tmp_path / "ledger.db", budget=ks.Budget.per_unit(10), dataset="people")
    with pytest.raises(ks.InputError, match=r"The staging folder .* must be writable"):
        release(frame(GOOD, SCHEMA), tmp_path, staging=tmp_path / name, ledger=ledger)
    assert not ledger.spends("people")


def test_whole_numbers_of_any_type_are_counts(frame, tmp_path):
    from decimal import Decimal

    for kind, number in (("double", 3.0), ("decimal(20,2)", Decimal("3.00")), ("short", 3)):
        rows = [("a", "x", "f", number)]
        released = release(frame(rows, SCHEMA.replace("n long", f"n {kind}")), tmp_path)
        assert released.certificate.kept.parts[0].totals[0].value == 3


def test_arguments(frame, tmp_path):
    good = frame(GOOD, SCHEMA)
    for change, match in (
        ({"count": "m"}, "once each, got none or several for 'm'"),
        ({"count": "state"}, "must not be an axis"),
        ({"count": 3}, "The name of the count column must be text"),
        ({"count": None, "max_rows_per_unit": 2}, "must be given together"),
        ({"max_rows_per_unit": 1}, "must be given for records"),
        ({"domain": {"state": ["a"]}}, "Every axis must have its categories in domain=, got none for 'county'"),
        ({"domain": 3}, "domain= must be a Domain or a mapping"),
        ({"keep": 3}, "Totals to keep must be Invariants or a list of margins"),
        ({"keep": [["nobody"]]}, "An axis must be one of"),
        ({"mechanism": 3}, "mechanism"),
        ({"rng": 3}, "must come from ks.rng"),
        ({"staging": 3}, "The staging folder must be the name of a folder"),
        ({"staging": tmp_path / "st[1]"}, "The staging folder must not have any of"),
        ({"staging": "nosuch://host/folder"}, "on a file system that Spark knows"),
        ({"dataset": "people"}, "must be named with its ledger"),
    ):
        with pytest.raises(ks.InputError, match=match):
            release(good, tmp_path, **change)
    with pytest.raises(ks.InputError, match="must be a DataFrame of Spark, got a list of builtins"):
        release([1, 2], tmp_path)
    with pytest.raises(ks.InputError, match="must hold text, whole numbers, dates or booleans, got double"):
        release(good.withColumn("sex", good.n.cast("double")), tmp_path)
    with pytest.raises(ks.InputError, match="once each, got none or several for 'SEX'"):
        kss.release(
            good, axes=["sex"], count="SEX", keep=[], mechanism=ks.Laplace.per_unit(1), domain={"sex": ["f", "m"]}
        )
    with pytest.raises(ks.InputError, match="must differ in more than case"):
        kss.release(
            good.toDF("a", "A", "sex", "n"),
            axes=["a"],
            count="A",
            keep=[],
            mechanism=ks.Laplace.per_unit(1),
            domain={"a": ["a", "b"]},
        )
    with pytest.raises(ks.InputError, match="must differ in more than case"):
        release(good.withColumn("spare", good.n).withColumnRenamed("spare", "N"), tmp_path)
    with pytest.raises(ks.InputError, match="The count column must not be an axis, got 'count'"):
        kss.release(
            good, axes=["Count"], count=None, keep=[], mechanism=ks.Laplace.per_unit(1), domain={"Count": ["a", "b"]}
        )
    with pytest.raises(ks.InputError, match="which Hadoop replaces by a setting"):
        kss.release(
            good.toDF("${user.name}", "b", "c", "n"),
            axes=["${user.name}"],
            count="n",
            keep=[],
            mechanism=ks.Laplace.per_unit(1),
            domain=SETTING,
        )
    with pytest.raises(ks.InputError, match="'n' must hold whole numbers, got string"):
        release(good.withColumn("n", good.n.cast("string")), tmp_path)
    with pytest.raises(ks.PlanError, match="determine every cell"):
        release(good, tmp_path, keep=[AXES])


def test_workers_on_this_machine_run_the_python_of_the_driver(spark, monkeypatch):
    """Else Spark would take whatever is called python3, which need not have Keepsum."""
    context = spark.sparkContext
    monkeypatch.setattr(context, "pythonExec", "python3")
    use_this_python(spark)
    assert context.pythonExec == "python3"  # PYSPARK_PYTHON was chosen for these tests
    monkeypatch.delenv("PYSPARK_PYTHON")
    use_this_python(spark)
    assert context.pythonExec == sys.executable
    monkeypatch.setattr(context, "pythonExec", "python3")
    monkeypatch.setattr(context, "master", "yarn")
    use_this_python(spark)
    assert context.pythonExec == "python3"


def test_pinned_cells_must_be_accepted(frame, tmp_path):
    domain, rows = {"state": ["a", "b"], "county": {"a": ["x", "y"], "b": ["x"]}}, [("a", "x", 3), ("b", "x", 4)]
    df = frame(rows, "state string, county string, n long")
    arguments = {"axes": ["state", "county"], "count": "n", "keep": [["state"]], "domain": domain, "within": WITHIN}
    arguments |= {"mechanism": ks.Laplace.per_unit(epsilon=1), "staging": tmp_path / "staging"}
    with pytest.raises(ks.PlanError, match=r"pin 1 cell, .*: 'state=b, county=x'"):
        kss.release(df, **arguments)
    released = kss.release(df, **arguments, accept_pinned=["state=b, county=x"])
    assert released.certificate.exposure.pinned == [["b", "x"]]
    assert [row.n for row in released.table.where("state = 'b'").collect()] == [4]


def test_a_ledger_is_charged_once_and_told(frame, tmp_path):
    ledger = ks.Ledger.create(tmp_path / "ledger.db", budget=ks.Budget.per_unit(1.5), dataset="people")
    released = release(frame(GOOD, SCHEMA), tmp_path, ledger=ledger)
    (spend,) = ledger.spends("people")
    assert spend.outcome == "released"
    assert spend.sha256 == released.certificate.table.sha256
    assert released.certificate.ledger.dataset == "people"
    released.save(tmp_path / "out")
    assert ks.verify(tmp_path / "out")
    with pytest.raises(ks.BudgetError):  # before anything is read: a row that is not as declared is not found
        release(frame([("c", "x", "f", 3)], SCHEMA), tmp_path, ledger=ledger)
    assert len(ledger.spends("people")) == 1


def test_input_that_changes_is_not_released(spark, tmp_path):
    """Counts that are others each time they are computed: kept totals are not those that were counted."""

    def others(batches):
        import os

        import pyarrow as pa

        for batch in batches:
            ids = batch.column(0).to_pylist()
            columns = [
                pa.array([i % 10 for i in ids], pa.int32()),
                pa.array([b % 5 for b in os.urandom(len(ids))], pa.int32()),
            ]
            yield pa.RecordBatch.from_arrays(columns, ["g", "x"])

    changing = spark.range(2000).mapInArrow(others, "g int, x int")
    domain = {"g": list(range(10)), "x": list(range(5))}
    ledger = ks.Ledger.create(tmp_path / "ledger.db", budget=ks.Budget.per_unit(100), dataset="people")
    from keepsum.spark.releasing import CountedCells

    written = CountedCells.write

    def lost(self, place, noise):
        """Workers lose what they hold, and compute it again."""
        self._cells.unpersist(blocking=True)
        return written(self, place, noise)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CountedCells, "write", lost)
        with pytest.raises(ks.KeepsumError, match="a kept total was not kept"):
            kss.release(
                changing,
                axes=["g", "x"],
                count=None,
                keep=[["x"]],
                mechanism=ks.Laplace.per_unit(epsilon=1),
                domain=domain,
                ledger=ledger,
                staging=tmp_path / "staging",
            )
    (spend,) = ledger.spends("people")
    assert spend.outcome == "failed"
    assert not any((tmp_path / "staging").iterdir())


def test_what_dead_drivers_left_is_named(frame, tmp_path):
    (tmp_path / "staging" / "app-1-0123456789ab" / "table.parquet").mkdir(parents=True)
    with pytest.warns(
        ks.KeepsumWarning, match=r"app-1-0123456789ab.*stays charged: delete the folder, and release again"
    ):
        release(frame(GOOD, SCHEMA), tmp_path)
