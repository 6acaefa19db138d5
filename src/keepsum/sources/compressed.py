"""Files compressed by gzip or zstd, recognised by their first bytes and unpacked as far as memory allows."""

from __future__ import annotations

import gzip
import importlib
import io
import zlib
from pathlib import Path
from typing import Any

from keepsum._extras import missing
from keepsum._memory import BYTES_A_BYTE, check_room
from keepsum.errors import DataError, InputError

GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
CHUNK = 2**24  # bytes unpacked at a time
PIECE = 2**20  # the same where they are not kept


def unpacked(data: bytes, name: str) -> bytes:
    """The contents of a compressed file; any other file as it is.

    >>> unpacked(gzip.compress(b"sex,n"), "counts.csv.gz"), unpacked(b"sex,n", "counts.csv")
    (b'sex,n', b'sex,n')
    """
    if data.startswith(GZIP):
        return _read(gzip.GzipFile(fileobj=io.BytesIO(data)), name, "gzip")
    if data.startswith(ZSTD):
        return _read(_zstd(data, name), name, "zstd")
    return data


def _read(stream: Any, name: str, kind: str) -> bytes:
    """All that a stream unpacks to: a small file may unpack to more than fits in memory."""
    chunks: list[bytes] = []
    size = 0
    errors: tuple[type[Exception], ...] = (OSError, EOFError, zlib.error, *_zstd_errors())
    try:
        while chunk := stream.read(CHUNK):
            chunks.append(chunk)
            size += len(chunk)
            check_room(size, f"File {name!r}, unpacked,", BYTES_A_BYTE)
        return b"".join(chunks)
    except errors:  # not passed on, because some contain what was read
        chunks.clear()
    raise _incomplete(name, kind)


def check_complete(path: Path, kind: str) -> None:
    """Refuse a compressed file that is damaged or cut off, by unpacking all of it and keeping nothing.

    For programs that count as far as such a file goes, and compare no checksum.
    """
    import pyarrow

    complete = False
    try:
        with pyarrow.OSFile(str(path)) as file, pyarrow.CompressedInputStream(file, kind) as stream:
            while stream.read(PIECE):
                pass
        complete = True
    except OSError:  # not passed on, because some contain what was read
        pass
    if not complete:
        raise _incomplete(path.name, kind)


def _incomplete(name: str, kind: str) -> DataError:
    return DataError(
        f"File {name!r} must be a complete {kind} file, but it is damaged or cut off. Copy or compress it again."
    )


def _zstd(data: bytes, name: str) -> Any:
    """The stream of a zstd file, by the standard library where it can (Python 3.14), else by pyarrow."""
    zstd = _standard_zstd()
    if zstd is not None:
        return zstd.ZstdFile(io.BytesIO(data))
    try:
        import pyarrow
    except ImportError:
        raise InputError(missing(f"Reading {name!r}", "parquet", "pyarrow", instead="Unpack the file")) from None
    return pyarrow.CompressedInputStream(pyarrow.BufferReader(data), "zstd")


def _standard_zstd() -> Any:
    try:
        return importlib.import_module("compression.zstd")
    except ImportError:
        return None


def _zstd_errors() -> tuple[type[Exception], ...]:
    zstd = _standard_zstd()
    return () if zstd is None else (zstd.ZstdError,)
