"""The process that Spark forks Python workers from, with all that they import.

A worker that follows one that was killed, or that failed, is then there at once; else it would import for seconds.
"""

from __future__ import annotations

import pyarrow  # noqa: F401
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import keepsum.sampling.core.kernel
import keepsum.sampling.gaussian.sums
import keepsum.sampling.l1.forced_sums
import keepsum.spark.checking
import keepsum.spark.filling  # noqa: F401

if __name__ == "__main__":
    manager()
