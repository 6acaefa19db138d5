"""Reports without their figures, which take longer than everything else of a release: for tests of other parts."""

from __future__ import annotations

import pytest

from keepsum.report import page
from keepsum.report.figures import Picture


def without_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the figures of every page that is made; a page that other tests share must not be made meanwhile."""
    for figure in ("noise_figure", "uncertainty_figure"):
        monkeypatch.setattr(page, figure, lambda *_: Picture("<svg></svg>", "<svg></svg>", "not drawn"))
