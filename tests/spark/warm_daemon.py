"""The process that Spark forks Python workers from, with all that they import.

A worker that follows one that was killed, or that failed, is then there at once; else it would import for seconds.
"""

from __future__ import annotations

import pyarrow  # noqa: F401
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

if __name__ == "__main__":
    manager()
