"""Releases of tables that do not fit one machine, in Spark: ``keepsum.spark.release`` and ``keepsum.spark.verify``.

Needs the extra ``spark``, on the driver and on every worker. See ``docs/spark.md``.
"""

from keepsum.spark.releasing import SparkRelease, release
from keepsum.spark.verifying import verify

__all__ = ["SparkRelease", "release", "verify"]
