"""PySpark, where it is installed, and what a DataFrame must be."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from keepsum._extras import missing
from keepsum._saying import arg, the
from keepsum._text import shown_names, type_of
from keepsum.errors import InputError
from keepsum.tables.axes import quoted
from keepsum.tables.domain import Domain

LABELS = ("string", "byte", "short", "integer", "long", "boolean", "date")
NUMBERS = ("byte", "short", "integer", "long", "float", "double", "decimal")


def check_installed() -> None:
    """Refuse to go on without PySpark and what it takes to hand columns to workers."""
    absent = None
    try:
        import pyarrow  # noqa: F401
        import pyspark
    except ImportError as error:
        absent = error.name or "pyspark"
    if absent is not None:
        raise InputError(missing("keepsum.spark", "spark", absent))
    if not hasattr(pyspark.sql.DataFrame, "repartitionById"):
        raise InputError(f"keepsum.spark needs PySpark 4.1 or newer, got {pyspark.__version__}. Update it.")


def check_running(spark: Any, consequence: str = "") -> None:
    """Refuse what is no session, and one that was stopped."""
    from pyspark.sql import SparkSession

    if not isinstance(spark, SparkSession):
        raise InputError(f"{arg.spark} must be a Spark session, got {type_of(spark)}.")
    if spark.sparkContext._jsc is None:
        raise InputError(f"The Spark session must be running, but it was stopped.{consequence}")


def use_this_python(spark: Any) -> None:
    """Let workers on this machine run the driver's Python, unless another one was chosen: Spark would take any."""
    context = spark.sparkContext
    chosen = os.environ.get("PYSPARK_PYTHON") or context.getConf().get("spark.pyspark.python")
    if context.master.startswith("local") and not chosen:
        context.pythonExec = sys.executable


def check_frame(df: Any, axes: Sequence[str], count: str | None) -> Any:
    """The columns of a DataFrame that are released; refuses what is none, or has others."""
    from pyspark.sql import DataFrame

    if not isinstance(df, DataFrame):
        kind = f"a {type(df).__name__} of {type(df).__module__.partition('.')[0]}"
        raise InputError(
            f"The table must be a DataFrame of Spark, got {kind}. Use {the.call('ks.release')} for other tables."
        )
    if not hasattr(df, "_jdf"):
        raise InputError(
            "The table must be of a session inside the driver, got one of Spark Connect, which has no broadcast "
            "variables. Run the release on the cluster, by spark-submit."
        )
    check_running(df.sparkSession)
    if df.isStreaming:
        raise InputError("The table must be finished, got a stream. Release a batch of it.")
    wanted = [*axes, *([] if count is None else [count])]
    replaced = [name for name in wanted if "${" in name]
    if replaced:
        raise InputError(
            f"Columns must not have '${{' in their names, which Hadoop replaces by a setting, got "
            f"{shown_names(replaced)}. Rename them."
        )
    missing = [name for name in wanted if df.columns.count(name) != 1]
    if missing:
        raise InputError(
            f"Columns of the table must have the names of the axes and the count, {quoted(wanted)}, once each, got "
            f"none or several for {shown_names(missing)}. Check the spelling."
        )
    alike = {name.lower() for name in wanted}
    several = len(alike) < sum(name.lower() in alike for name in df.columns)
    if several and df.sparkSession.conf.get("spark.sql.caseSensitive") != "true":
        raise InputError(
            f"Columns must differ in more than case for Spark, got others like {quoted(wanted)}. Rename one, or set "
            f"spark.sql.caseSensitive."
        )
    types = {field.name: field.dataType.typeName() for field in df.schema.fields}
    for name in axes:
        if types[name].split("(")[0] not in LABELS:
            raise InputError(
                f"Column {the.column(name)} must hold text, whole numbers, dates or booleans, got {types[name]}. "
                "Convert it."
            )
    if count is not None and types[count].split("(")[0] not in NUMBERS:
        raise InputError(f"Column {the.column(count)} must hold whole numbers, got {types[count]}. Convert it.")
    return numbered(df, wanted)


def numbered(df: Any, names: Sequence[str]) -> Any:
    """Some columns of a DataFrame, by their places: Spark takes dots and backticks in names for its language."""
    from pyspark.sql.functions import col

    return df.select(*(col("`" + name.replace("`", "``") + "`").alias(f"c{k}") for k, name in enumerate(names)))


def columns(domain: Domain, count: str) -> Any:
    """The columns of a released table; without them Spark would start a job to ask its files."""
    from pyspark.sql.types import LongType, StringType, StructField, StructType

    def kind(name: str) -> Any:
        return LongType() if isinstance(domain.axis(name).labels[0], int) else StringType()

    axes = [StructField(name, kind(name), False) for name in domain.axes]
    return StructType([*axes, StructField(count, LongType(), False)])


def shared(broadcast: Any) -> Callable[[], Any]:
    """The value of a broadcast variable, as a function that a worker calls."""
    return lambda: broadcast.value
