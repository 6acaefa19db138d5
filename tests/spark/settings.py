"""Settings of the clusters of all tests: they start quickly, and do little for a short time."""

from __future__ import annotations

import os
import sys
from pathlib import Path

JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"  # compiled once, which is enough for seconds
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": JAVA,
    "spark.executor.extraJavaOptions": JAVA,
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.locality.wait": "0",  # else a worker that is free waits for seconds before it takes what another one holds
    "spark.python.daemon.module": "warm_daemon",
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",  # else RDDs have a daemon of their own
}


def workers_run_this_python() -> None:
    """Let workers run this Python, and find their daemon; call it before Java starts."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    here, others = str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")
    if here not in others.split(os.pathsep):
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [others, here]))
