"""Everything that a release shows, by the library and by the commands, but for the noise."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import json
import re
import tempfile
import warnings
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import polars as pl
import pyarrow as pa
from pyarrow import feather, parquet

import keepsum as ks
from keepsum.cli.app import run
from keepsum.planning.describe import describe_choice
from keepsum.releasing.release import prepare
from property.paired_tables import Declared, File

MAKERS = {"pandas": pa.Table.to_pandas, "polars": pl.from_arrow, "pyarrow": lambda table: table}
FILES = ("csv", "parquet", "arrow", "xlsx", "csv.gz")
WRITTEN = {"xlsx": "csv", "csv.gz": "csv"}  # the formats in which releases of some files are written


def written(file: File, declared: Declared, kind: str) -> bytes:
    """The bytes of a file of that kind."""
    sink = io.BytesIO()
    if kind == "csv.gz":
        return gzip.compress(written(file, declared, "csv"), mtime=0)
    if kind == "xlsx":
        book = openpyxl.Workbook()
        book.active.append([*declared.domain.axes, "n"])
        for row, count in zip(file.labels, file.counts, strict=True):
            book.active.append([*row.values(), file.dtype(count).item() if count < 100 else str(count)])
        book.save(sink)
        return sink.getvalue()
    if kind == "csv":
        names = (*declared.domain.axes, "n")
        lines = [",".join(f'"{name}"' if declared.quoted else name for name in names)]
        for row, count in zip(file.labels, file.counts, strict=True):
            labels = [in_quotes(label) for label in row.values()]
            bare = [text if set(text[1:-1]) & set(',"') else text[1:-1] for text in labels]
            lines.append(",".join([*(labels if '"' in file.style else bare), file.style.format(count)]))
        return ("\n".join(lines) + "\n").encode()
    if kind == "parquet":
        parquet.write_table(file.frame(declared), sink)
    else:
        feather.write_feather(file.frame(declared), sink, compression="uncompressed")
    return sink.getvalue()


def in_quotes(label: Any) -> str:
    return '"' + str(label).replace('"', '""') + '"'


def masked(certificate: bytes) -> dict[str, Any]:
    """A certificate but for the time and the hash."""
    record = json.loads(certificate)
    record["released"] = record["table"]["sha256"] = "#"
    return record


def shape_of(path: Path) -> Any:
    """All of a released file but the counts."""
    if path.suffix == ".json":
        return masked(path.read_bytes()) if "certificate" in path.name else path.read_bytes()
    if path.suffix == ".csv":
        return re.sub(rb"(?m),-?\d+$", b",#", path.read_bytes())
    table = parquet.read_table(path) if path.suffix == ".parquet" else feather.read_table(path)
    return table.schema, table.schema.metadata, table.drop_columns("n").to_pylist(), table["n"].num_chunks


def frame_shape(frame: Any) -> Any:
    """All of a released frame but the counts."""
    if isinstance(frame, pa.Table):
        return str(frame.schema), frame.drop_columns("n").to_pylist()
    types = [repr(dtype) for dtype in frame.dtypes]
    rows = frame.drop(columns="n") if isinstance(frame, pd.DataFrame) else frame.drop("n")
    index = repr(frame.index) if isinstance(frame, pd.DataFrame) else None
    return list(frame.columns), types, index, [list(rows[name]) for name in rows.columns]


def by_library(declared: Declared, file: File, door: str) -> dict[str, Any]:
    """Everything that the library shows of a release, or what it refuses."""
    options = {"count": "n", "within": declared.domain.within, "keep_order": declared.keep_order}
    options["axes"] = list(declared.domain.axes) if declared.named else None
    options["domain"] = declared.domain if declared.whole else declared.categories()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        if door in MAKERS:
            table = ks.Table.from_frame(MAKERS[door](file.frame(declared)), **options)
        else:
            Path(f"in.{door}").write_bytes(written(file, declared, door))
            table = ks.read_table(f"in.{door}", **options)
        plan = ks.plan(keep=table.keep(*declared.keep), mechanism=declared.mechanism)
        ready = prepare(plan._record, table, "all", seeded=True)
        released = ks.Release(ready.draw(ks.rng(seed=1)), ks.Plan(ready.plan))
        saved = released.save("out.csv" if door in MAKERS else f"out.{WRITTEN.get(door, door)}")
        return {
            "table": (repr(table), table._repr_html_(), table.domain, table.undeclared, table.count),
            "plan": plan.explain(details=True),
            "samplers": [(describe_choice(choice), choice.exactness) for choice in plan.samplers],
            "before": (repr(ready.accuracy), ready.accuracy.margins.tolist(), ready.warnings, ready.totals),
            "bounds": [list(part) for part in (ready.bounds.cells, ready.bounds.low, ready.bounds.high)],
            "noise": (released.table.counts - table.counts).tolist(),
            "released": repr(released),
            "dtype": released.table.counts.dtype,
            "certificate": masked(released.certificate.to_json()),
            "frame": frame_shape(released.table.to_frame(door if door in MAKERS else "polars")),
            "files": {path.name: shape_of(path) for path in sorted(Path().glob("out.*"))},
            "verified": [check for check in ks.verify(saved).checks if check.name != "certificate"],
        }


def by_command(declared: Declared, file: File, door: str) -> dict[str, Any]:
    """Everything that the commands print and write."""
    arguments = ["--count", "n", "--epsilon", "0.5", *(["--keep-order"] if declared.keep_order else [])]
    if declared.named:
        arguments += ["--axes", ",".join(declared.domain.axes)]
    for child, parent in declared.domain.within.items():
        arguments += ["--within", f"{child}:{parent}"]
    for text in options_of(declared):
        arguments += ["--categories", text]
    for margin in declared.keep:
        arguments += ["--keep", ",".join(margin)] if margin else ["--keep-total"]
    shown: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path(f"in.{door}").write_bytes(written(file, declared, door))
        output = f"out.{WRITTEN.get(door, door)}"
        ends = ["-o", output, "--yes", "--seed", "7", "--accept-pinned", "all"]
        for name, call in {
            "plan": ["plan", f"in.{door}", *arguments],
            "release": ["release", f"in.{door}", *arguments, *ends],
            "json": ["release", f"in.{door}", *arguments, *ends, "--json", "--force"],
        }.items():
            with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
                status = run(call)
            shown[name] = (status, re.sub(r'"sha256": "\w+"', "#", out.getvalue()), err.getvalue())
        shown["files"] = {path.name: shape_of(path) for path in sorted(Path().glob("out.*"))}
        if shown["release"][0] == 0:
            shown["noise"] = noise_of(Path(output), file)
    return shown


def options_of(declared: Declared) -> list[str]:
    """The declared categories as options of a command."""

    def listed(labels):
        return ",".join(map(in_quotes, labels))

    texts = []
    for name, categories in declared.categories().items():
        if name in declared.domain.within:
            below: dict[Any, list[Any]] = {}
            for parent, label in categories:
                below.setdefault(parent, []).append(label)
            texts += [f"{name}:{in_quotes(parent)}={listed(labels)}" for parent, labels in below.items()]
        else:
            texts.append(f"{name}={listed(categories)}")
    return texts


def noise_of(path: Path, file: File) -> list[int]:
    """What was added to each row of a released file."""
    before = {tuple(map(str, row.values())): count for row, count in zip(file.labels, file.counts, strict=True)}
    if path.suffix == ".csv":
        rows = list(csv.reader(path.read_text().splitlines()))[1:]
    else:
        table = parquet.read_table(path) if path.suffix == ".parquet" else feather.read_table(path)
        rows = [[str(value) for value in row.values()] for row in table.to_pylist()]
    return [int(count) - before.get(tuple(labels), 0) for *labels, count in rows]


def outcome(show, declared: Declared, file: File, door: str) -> Any:
    """What is shown, with the warnings; or the refusal."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            shown = show(declared, file, door)
        except ks.KeepsumError as error:
            shown = (type(error), str(error))
    return shown, [(warning.category, str(warning.message)) for warning in caught]
