"""A released table as Spark writes it: a folder of Parquet files, each with some of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from keepsum._memory import BYTES_A_BYTE, check_room
from keepsum.errors import DataError
from keepsum.tables.coded import Coded
from keepsum.tables.columns import columnar_source
from keepsum.tables.origins import Frame
from keepsum.tables.source import Source

ENDING = ".parquet"


def is_parquet_folder(path: Path) -> bool:
    """Whether a table is a folder of Parquet files, by its name."""
    return path.suffix == ENDING and path.is_dir()


def folder_source(path: Path) -> tuple[Source, Frame]:
    """The columns of all files of a folder together, in the order of their names; hidden ones are not of the table."""
    files = sorted(file for file in path.iterdir() if not file.name.startswith((".", "_")))
    if not files or any(file.suffix != ENDING or not file.is_file() for file in files):
        raise DataError(f"Folder {path.name!r} must have Parquet files, and nothing else.")
    check_room(sum(file.stat().st_size for file in files), f"Folder {path.name!r}", BYTES_A_BYTE)
    parts = [columnar_source(file.read_bytes(), file.name) for file in files]
    sources, (first, *others) = [source for source, _ in parts], [frame for _, frame in parts]
    if any(frame.columns != first.columns or frame.dtypes != first.dtypes for frame in others):
        raise DataError(f"Files in folder {path.name!r} must have the same columns, and some have others.")
    joined = Source(
        names=sources[0].names,
        labels=cache(lambda name: _labels([source.labels(name) for source in sources])),
        counts=lambda name: _counts([source.counts(name) for source in sources]),
        where=lambda row: f"row {row + 1}",
        whole=sources[0].whole,
        height=sum(source.height or 0 for source in sources),
    )
    return joined, first


def _labels(parts: Sequence[Coded]) -> Coded:
    """Columns of labels one behind the other."""
    values = list(chain.from_iterable(part.values for part in parts))
    before = np.cumsum([0, *(len(part.values) for part in parts)])
    codes = np.concatenate([part.codes + start for part, start in zip(parts, before[:-1].tolist(), strict=True)])
    return Coded(values, codes).replaced(values)


def _counts(parts: Sequence[Any]) -> Any:
    """Columns of counts one behind the other."""
    if any(isinstance(part, np.ma.MaskedArray) for part in parts):
        masks = [np.ma.getmaskarray(part) for part in parts]
        return np.ma.MaskedArray(np.concatenate([np.ma.getdata(part) for part in parts]), np.concatenate(masks))
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    return list(chain.from_iterable(parts))
