"""The sentences of a report that no other text of a release has, each from its facts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal

from keepsum._text import percent
from keepsum.accuracy.words import words_of_basis
from keepsum.report.crossed import CrossTable
from keepsum.report.facts import Margins, ReportFacts
from keepsum.report.kept import Kept
from keepsum.report.uncertainty import Uncertainty


def number(value: int) -> str:
    """A whole number as the page shows it.

    >>> number(-12345)
    '−12,345'
    """
    return f"{value:,}".replace("-", "−")


def relative_words(part: float | None) -> str:
    """A relative margin of error; None where the count is not above 0.

    >>> [relative_words(part) for part in (None, 0, 1e-9, 0.004, 0.0456, 0.125, 25.0)]
    ['count ≤ 0', '0%', 'under 0.001%', '0.4%', '4.6%', '13%', 'over 1,000%']
    """
    if part is None:
        return "count ≤ 0"
    value = 100 * part
    if value == 0:
        return "0%"
    if value >= 1000:
        return "over 1,000%"
    if value < 0.001:
        return "under 0.001%"
    places = 0 if value >= 10 else 1 if value >= 1 else -math.floor(math.log10(value))
    return f"{_half_up(value, places)}%"


def _half_up(value: float, places: int) -> str:
    """A number rounded as the script rounds it, which Python would not: halves up."""
    rounded = Decimal(value).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
    return f"{rounded:f}" if value >= 1 else f"{rounded.normalize():f}"


def report_title(facts: ReportFacts) -> str:
    """What the table is: 'Counts by county and education'."""
    return f"Counts by {_joined([axis.name for axis in facts.published.axes])}"


def lead(facts: ReportFacts) -> str:
    """The release in two or three sentences."""
    cells, kept, margins = facts.published.cells, facts.kept, facts.margins
    exact = (
        f" {_count(kept.totals, 'total')} {'is' if kept.totals == 1 else 'are'} kept exactly." if kept.totals else ""
    )
    likely = f"with a probability of at least {percent(margins.level)}"
    which = "Each count" if margins.smallest == margins.largest else "A typical count"
    of = " of the unbiased table" if facts.cells.unbiased is not None else ""
    size = f"{which}{of} is within ±{number(margins.typical)} of the confidential one {likely}."
    return f"{_count(cells, 'count')} published with random noise.{exact} {size}"


def kept_words(kept: Kept) -> str:
    """How many totals are kept, and what that means."""
    independent = "" if kept.independent == kept.totals else f" ({kept.independent:,} of them independent)"
    they, them = ("they are", "them") if kept.totals > 1 else ("it is", "it")
    return (
        f"The noise leaves {_count(kept.totals, 'total')}{independent} unchanged, so {they} published exactly. "
        f"Whatever follows from {them} is not protected."
    )


def margin_words(facts: ReportFacts) -> str:
    """What a margin of error is, how large they are, and where they come from."""
    margins = facts.margins
    low, high = margins.smallest, margins.largest
    spread = (
        f"It is ±{number(high)} for every cell"
        if low == high
        else (f"It is ±{number(margins.typical)} for a typical cell (from ±{number(low)} to ±{number(high)})")
    )
    count = "unbiased" if facts.cells.unbiased is not None else "released"
    zero = " Where the table says that it is ±0 because the count is kept exactly, there is no noise." * bool(
        facts.kept.pinned
    )
    if bool((~facts.cells.is_exact & (facts.cells.margins == 0)).any()):
        alone = " and the count is not kept exactly" if facts.kept.pinned else ""
        zero += f" Where it is ±0{alone}, the noise is 0 with a probability of at least {percent(margins.level)}."
    return (
        f"The margin of error says how far the noise may have moved a count: with a probability of at least "
        f"{percent(margins.level)}, the confidential count is within the margin of the {count} one. "
        f"{spread}{_basis(margins, facts.published.cells)}.{zero}"
    )


def _basis(margins: Margins, cells: int) -> str:
    """How margins are known; the law of the noise is public, so none of it costs privacy."""
    if margins.basis == "exact":
        return ", computed from the law of the noise, which is public"
    which = f" for {margins.simulated_cells:,} cells, and computed for the others" * (margins.simulated_cells < cells)
    return f", {words_of_basis(margins.basis, margins.draws, margins.error)}{which}"


def level_words(facts: ReportFacts) -> str:
    """What a focus is, and which sums its margins are of."""
    table = "unbiased" if facts.cells.unbiased is not None else "released"
    return (
        f"Noise of counts adds up in their sums. Here some totals have a loss of their own, a focus, which makes "
        f"their noise smaller than that of other sums. Add up {table} counts to get such a total: it is within its "
        f"margin of the confidential one with a probability of at least {percent(facts.margins.level)}."
    )


def cross_words(cross: CrossTable) -> str:
    """What the edges of a cross table are."""
    kept = [
        axis
        for axis, totals in ((cross.row_axis, cross.row_totals), (cross.column_axis, cross.column_totals))
        if totals
    ]
    if not kept:
        return "Released counts. No total of a row or a column is kept exactly, so none is shown."
    return f"Released counts, with the totals of {_joined(kept)} that are kept exactly in bold: they have no noise."


def noise_words(facts: ReportFacts) -> str:
    """How the noise of a cell is distributed."""
    curves, level = facts.curves, percent(facts.margins.level)
    shown = "Its law does not depend on the data, so nothing is given away by showing it."
    if not curves:
        shown = "Its law does not depend on the data. It is not drawn here, because it would take long to simulate."
    stays = level
    if len(curves) == 1 and not curves[0].draws:  # down to a tenth of a percent, so that nothing is certain
        stays = max(
            level, f"{min(999, math.floor(1000 * curves[0].within)) / 10:.1f}%", key=lambda text: float(text[:-1])
        )
    return (
        f"Noise is symmetric around 0: it raises a count as often as it lowers it, so sums over many cells stay right "
        f"on average. The noise of a cell stays within its margin of error with a probability of at least {stays}. "
        f"{shown}"
    )


def uncertainty_words(uncertainty: Uncertainty) -> str:
    """How many counts are well known, and how many are not."""
    sentences = ["A margin of error matters by comparison with its count."]
    if uncertainty.positive:
        sentences.append(
            f"Of {_count(uncertainty.positive, 'count')} above 0 with noise, {uncertainty.within_tenth:,} "
            f"{_have(uncertainty.within_tenth)} a margin of at most a tenth of the count, and "
            f"{uncertainty.at_least_all:,} {_have(uncertainty.at_least_all)} one at least as large as the count."
        )
    if uncertainty.not_positive:
        sentences.append(
            f"{_count(uncertainty.not_positive, 'count')} with noise "
            f"{'is' if uncertainty.not_positive == 1 else 'are'} 0 or less, and cannot be compared."
        )
    if uncertainty.exact:
        sentences.append(f"{_count(uncertainty.exact, 'count')} {_have(uncertainty.exact)} no noise.")
    return " ".join(sentences)


def _have(count: int) -> str:
    return "has" if count == 1 else "have"


def _count(count: int, thing: str) -> str:
    return f"{count:,} {thing}{'s' * (count != 1)}"


def _joined(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
