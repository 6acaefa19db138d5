"""Folders that Spark can reach, on the local file system or any other that Hadoop knows."""

from __future__ import annotations

import contextlib
import errno
import os
import uuid
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from keepsum._saying import the
from keepsum._text import type_of
from keepsum.errors import InputError, UnreachableError

GLOB = frozenset("[]{}*?\\")  # that Spark, where it reads a table, takes for patterns
STAGING = ".keepsum-staging"  # in the user's home folder of the default file system


@dataclass(frozen=True, eq=False)
class Place:
    """A folder or a file, by its Hadoop path."""

    spark: Any
    path: str

    @classmethod
    def of(cls, spark: Any, path: str | PathLike[str], what: str) -> Place:
        """The place with this name, made absolute."""
        if not isinstance(path, (str, PathLike)) or not fspath(path) or isinstance(fspath(path), bytes):
            raise InputError(f"{what} must be the name of a folder, got {type_of(path)}.")
        found, problem = None, ""
        try:
            given = spark._jvm.org.apache.hadoop.fs.Path(fspath(path))
            system = given.getFileSystem(spark._jsc.hadoopConfiguration())
            if system.getUri().getScheme() == "file" and not given.isAbsolute():  # Java knows no change of the folder
                given = spark._jvm.org.apache.hadoop.fs.Path(str(Path(fspath(path)).absolute()))
            found = cls(spark, system.makeQualified(given).toString())
        except Exception as error:  # of the JVM, of any class
            problem = reason(error)
        if found is None:
            raise InputError(f"{what} must be on a file system that Spark knows, but: {problem}.")
        if GLOB.intersection(found._java.toUri().getPath()):
            raise InputError(
                f"{what} must not have any of [ ] {{ }} * ? \\ in its name, which Spark takes for a pattern, got "
                f"{found.path!r}. Choose another name."
            )
        return found

    @classmethod
    def staging(cls, spark: Any) -> Place:
        """The folder where releases stay until they are saved, by default."""
        system = spark._jvm.org.apache.hadoop.fs.FileSystem.get(spark._jsc.hadoopConfiguration())
        return cls(spark, f"{system.getHomeDirectory().toString()}/{STAGING}")

    def __truediv__(self, name: str) -> Place:
        return Place(self.spark, f"{self.path.rstrip('/')}/{name}")

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rstrip("/").rsplit("/", 1)[-1]

    @property
    def beside(self) -> Place:
        """A name beside this one that nothing has."""
        return self.parent / f".{self.name}.keepsum-{uuid.uuid4().hex[:12]}"

    @property
    def parent(self) -> Place:
        """The folder that it is in; that of all folders is in itself."""
        above = self._java.getParent()
        return self if above is None else Place(self.spark, above.toString())

    def exists(self) -> bool:
        """Whether there is something."""
        return bool(self._system.exists(self._java))

    def folders(self) -> list[Place]:
        """The folders in it."""
        if not self.exists():
            return []
        return [
            Place(self.spark, s.getPath().toString()) for s in self._system.listStatus(self._java) if s.isDirectory()
        ]

    def files(self) -> list[Place]:
        """The files in it that Spark reads: those whose names begin with neither a dot nor an underscore."""
        found = [Place(self.spark, s.getPath().toString()) for s in self._system.listStatus(self._java) if s.isFile()]
        return [file for file in found if not file.name.startswith((".", "_"))]

    def parquet_columns(self) -> list[tuple[str, str]]:
        """The columns that a Parquet file has, with their types as it stores them: INT64, BINARY (STRING)."""
        parquet, conf = self.spark._jvm.org.apache.parquet.hadoop, self.spark._jsc.hadoopConfiguration()
        reader = parquet.ParquetFileReader.open(parquet.util.HadoopInputFile.fromPath(self._java, conf))
        try:
            return [(field.getName(), _stored(field)) for field in reader.getFileMetaData().getSchema().getFields()]
        finally:
            reader.close()

    def make(self) -> None:
        """Make a folder of this name, which nothing has, and those that it is in."""
        problem = ""
        try:
            made = self._system.mkdirs(self._java)
        except Exception as error:  # of the JVM, of any class
            made, problem = False, f", but: {reason(error)}"
        if not made:
            raise UnreachableError(
                f"The staging folder {the.file(self.parent.path)} must be writable{problem}. Choose another one."
            )

    def write(self, data: bytes) -> None:
        """Write a file that is not there yet, in a folder that is; without a file of sums beside it, as Hadoop has."""
        if self._local is not None:
            with self._local.open("xb") as file:
                file.write(data)
            return
        stream = self._system.create(self._java, False)
        try:
            stream.write(data)
        finally:
            stream.close()

    def read(self) -> bytes:
        """The contents of a small file."""
        if self._local is not None:
            return self._local.read_bytes()
        stream = self._system.open(self._java)
        try:
            return bytes(self.spark._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
        finally:
            stream.close()

    def delete(self) -> None:
        """Remove it, with all that is in it."""
        self._system.delete(self._java, True)

    def move(self, to: Place) -> bool:
        """Give it another name that nothing has, by one rename; False if that failed, and nothing has that name then.

        What cannot be renamed there, because it is on another file system or disk, is copied beside it first, and
        stays where it was as well.
        """
        if self._system.getUri().equals(to._system.getUri()):
            renamed = self._rename(to)
            if renamed is not None:
                return renamed
        between, moved = to.beside, False
        try:
            copied = self.spark._jvm.org.apache.hadoop.fs.FileUtil.copy(
                self._system, self._java, to._system, between._java, False, self.spark._jsc.hadoopConfiguration()
            )
            moved = bool(copied) and not to.exists() and bool(between._rename(to))
        except Exception:  # of the JVM, of any class
            moved = False
        finally:
            if not moved:
                with contextlib.suppress(Exception):  # what is under way says more
                    between.delete()
        return moved

    def _rename(self, to: Place) -> bool | None:
        """Rename it on its file system; None if that would be a copy, which Hadoop makes in place of local renames."""
        try:
            if self._local is None or to._local is None:
                return self._rename_by_hadoop(to)
            to._local.mkdir()  # nobody else can have this name from now on; an empty folder gives way to a rename
        except Exception:  # of the JVM, of any class
            return False
        try:
            os.rename(self._local, to._local)  # noqa: PTH104
        except BaseException as error:
            with contextlib.suppress(OSError):  # which has something in it if it was renamed
                to._local.rmdir()
            if not isinstance(error, OSError):
                raise
            return None if error.errno == errno.EXDEV else False
        return True

    def _rename_by_hadoop(self, to: Place) -> bool:
        """Rename it; if a folder of that name came in the meantime, Hadoop moves it into that, and it is taken out."""
        if not self._system.rename(self._java, to._java):
            return False
        inside = to / self.name
        if not inside.exists():
            return True
        self._system.rename(inside._java, self._java)
        return False

    @property
    def _local(self) -> Path | None:
        where = self._java.toUri()
        return Path(where.getPath()) if where.getScheme() == "file" else None

    @property
    def _java(self) -> Any:
        return self.spark._jvm.org.apache.hadoop.fs.Path(self.path)

    @property
    def _system(self) -> Any:
        return self._java.getFileSystem(self.spark._jsc.hadoopConfiguration())


def outside_errors() -> tuple[type[Exception], ...]:
    """What a disk, a call into the JVM or a job of Spark may raise."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return OSError, Py4JError, PySparkException


def reason(error: Exception) -> str:
    """The first line of what began with an error, of the JVM or of Python."""
    found: Any = getattr(error, "java_exception", None)
    while found is not None and found.getCause() is not None:
        found = found.getCause()
    lines = str(error if found is None else found.toString()).splitlines()
    text = next((line for line in lines if line.strip()), type(error).__name__)
    return text.strip().rstrip(".")


def _stored(field: Any) -> str:
    if not field.isPrimitive():
        return "several columns"
    annotation = field.getLogicalTypeAnnotation()
    kind = field.asPrimitiveType().getPrimitiveTypeName().toString()
    return str(kind if annotation is None else f"{kind} ({annotation.toString()})")
