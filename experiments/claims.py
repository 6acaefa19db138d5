"""A claim of the paper with the number measured here; the verdict is computed, never typed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

AGREES, DISAGREES, NOT_RUN = "agrees", "disagrees", "not run"
NOT_IN_PAPER = "not in the paper"  # the place of a claim of ours


@dataclass(frozen=True)
class Tolerance:
    """When a number agrees with the paper's: a description of the rule, and the rule.

    Examples
    --------
    >>> within_factor(10).holds(1e5, 3e4), within_factor(10).holds(1e5, 3e6)
    (True, False)
    """

    rule: str
    holds: Callable[[float, float], bool]


def within_factor(factor: float) -> Tolerance:
    """Ours is between paper / factor and paper * factor: for claims like "about 10^5"."""
    return Tolerance(
        f"within a factor of {factor:g}",
        lambda paper, ours: paper > 0 and ours > 0 and abs(math.log(ours / paper)) <= math.log(factor) + 1e-12,
    )


def equal() -> Tolerance:
    """Exactly the paper's number."""
    return Tolerance("equal", lambda paper, ours: ours == paper)


def at_most() -> Tolerance:
    """The paper's number is an upper limit."""
    return Tolerance("at most the paper's", lambda paper, ours: ours <= paper)


def below() -> Tolerance:
    """The paper's number is a strict upper limit."""
    return Tolerance("below the paper's", lambda paper, ours: ours < paper)


def at_least() -> Tolerance:
    """The paper's number is a lower limit."""
    return Tolerance("at least the paper's", lambda paper, ours: ours >= paper)


def not_rejected(rate: float) -> Tolerance:
    """Ours is a p-value; the claim holds unless it is tiny. A true claim is rejected with probability ``rate``."""
    return Tolerance(
        f"p ≥ {rate:g}, the error rate",
        lambda paper, ours: ours >= rate,
    )


def rejected(rate: float) -> Tolerance:
    """Ours is a p-value that must be small; without an effect that happens with probability ``rate``."""
    return Tolerance(
        f"p < {rate:g}, the error rate",
        lambda paper, ours: ours < rate,
    )


@dataclass(frozen=True)
class Claim:
    """One claim: what it says, where the paper says it, both numbers, and when they agree.

    Attributes
    ----------
    what, where
        The claim, and its place in the paper, or ``NOT_IN_PAPER`` if it is ours.
    paper
        The paper's number.
    ours
        The number measured here; None if it was not run.
    tolerance
        When the two agree.
    because
        Why they differ, or why it was not run.
    unit
        The unit of the numbers.
    paper_text
        The paper's side, if it is text rather than a number.
    """

    what: str
    where: str
    paper: float
    ours: float | None
    tolerance: Tolerance
    because: str = ""
    unit: str = ""
    paper_text: str = ""

    @property
    def is_ours(self) -> bool:
        """Whether it is a claim of Keepsum's, and none of the paper's."""
        return self.where == NOT_IN_PAPER

    @property
    def verdict(self) -> str:
        """Computed from the two numbers; a number that is not finite never agrees."""
        if self.ours is None:
            return NOT_RUN
        agrees = math.isfinite(self.ours) and self.tolerance.holds(self.paper, self.ours)
        return AGREES if agrees else DISAGREES


def formatted(number: float | None) -> str:
    """A number for a table: whole numbers in full, others to four digits.

    >>> formatted(100000.0), formatted(0.01234), formatted(1e-9), formatted(None)
    ('100,000', '0.01234', '1e-09', '-')
    """
    if number is None:
        return "-"
    if math.isfinite(number) and number == round(number) and abs(number) < 1e9:
        return f"{round(number):,}"
    return f"{number:,.0f}" if abs(number) >= 1e4 else f"{number:.4g}"


def summary(claims: Sequence[Claim]) -> str:
    """How many of the paper's claims agree, and then how many of ours, which are no part of that.

    >>> from dataclasses import replace
    >>> paper, ours = Claim("x", "Figure 1", 1, 1, equal()), Claim("y", NOT_IN_PAPER, 1, 1, equal())
    >>> summary([paper, replace(paper, ours=None), ours])
    "Of the paper's 2 claims 1 agrees, 0 disagree and 1 was not run. Of 1 claim of our own 1 agrees."
    """
    papers, ours = ([claim for claim in claims if claim.is_ours is whose] for whose in (False, True))
    agree, disagree, missing = (sum(c.verdict == v for c in papers) for v in (AGREES, DISAGREES, NOT_RUN))
    text = (
        f"Of the paper's {len(papers)} claims {agree} agree{'s' * (agree == 1)}, "
        f"{disagree} disagree{'s' * (disagree == 1)} and {missing} {'was' if missing == 1 else 'were'} not run."
    )
    if not ours:
        return text
    held = sum(claim.verdict == AGREES for claim in ours)
    agreeing = "all agree" if held == len(ours) > 1 else f"{held} agree{'s' * (held == 1)}"
    return f"{text} Of {len(ours)} claim{'s' * (len(ours) != 1)} of our own {agreeing}."


def as_table(claims: Sequence[Claim]) -> str:
    """The claims as a Markdown table."""
    rows = ["| claim | where | paper | ours | agree if | verdict |", "|---|---|---|---|---|---|"]
    for claim in claims:
        unit = f" {claim.unit}" if claim.unit else ""
        verdict = claim.verdict if claim.verdict == AGREES else f"**{claim.verdict}**"
        ours = formatted(claim.ours) + unit * (claim.ours is not None)
        cells = [claim.what, claim.where, claim.paper_text or formatted(claim.paper) + unit, ours]
        rows.append(f"| {' | '.join([*cells, claim.tolerance.rule, verdict])} |")
    return "\n".join(rows)


def explanations(claims: Sequence[Claim]) -> str:
    """Each reason once, with the claims that it explains; a claim without a reason is called unexplained."""
    reasons: dict[str, list[str]] = {}
    for claim in claims:
        if claim.verdict != AGREES:
            paper = claim.paper_text or formatted(claim.paper)
            told = f"**{claim.what}** ({claim.verdict}; paper {paper}, ours {formatted(claim.ours)})"
            reasons.setdefault(claim.because or "UNEXPLAINED.", []).append(told)
    lines = [f"- {'; '.join(told)}: {reason}" for reason, told in reasons.items()]
    return "\n".join(lines) if lines else "None: every claim agrees."
