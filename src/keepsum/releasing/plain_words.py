"""A release in a few sentences for readers who know no differential privacy, such as a lawyer.

Each says no more than the guarantee does: for two tables with the same kept totals, any set of outcomes is at most
e^epsilon times as likely under one as under the other, plus delta.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

from keepsum.privacy.numbers import as_decimal, rounded_up, shown_briefly, three_digits_up
from keepsum.releasing.person_statements import PersonStatements
from keepsum.tables.records import changes_of

TITLE = "In plain words"
NAMED_ATTRIBUTES = 5
_LARGEST_EXPONENT = 13  # e^13 is below half a million


def plain_words(statements: PersonStatements, totals: int, pinned: int, seeded: bool = False) -> list[str]:
    """What is exact, how much one conclusion can depend on one person, and what else that depends on.

    Parameters
    ----------
    statements
        What the guarantee means for one person, or one record.
    totals, pinned
        How many totals are kept, and how many cells they fix.
    seeded
        Whether the noise comes from a seed.
    """
    if statements.guarantee.sampling == "no sampler":
        return ["No release is possible: there is no sampler for this noise under these totals."]
    limit = _limit(statements, totals)
    return [
        _exact(statements, totals, pinned),
        limit or f"No limit is guaranteed to what the released counts say about one {statements.subject}.",
        *([" ".join(_conditions(statements, seeded))] if limit else []),
    ]


def _exact(statements: PersonStatements, totals: int, pinned: int) -> str:
    if not totals:
        return "No total is published exactly; every count has noise."
    bounded = " (of the counted records)" if statements.bounded else ""
    kept = f"The {totals:,} kept totals{bounded} are" if totals > 1 else f"The kept total{bounded} is"
    they, them = ("they are", "them") if totals > 1 else ("it is", "it")
    cells = f"; {pinned:,} count{'s' * (pinned != 1)} that follow{'s' * (pinned == 1)} from {them}"
    fixed = f"{cells} {'has' if pinned == 1 else 'have'} no noise" if pinned else ""
    return (
        f"{kept} published exactly{fixed}. So {they} not protected, nor is whatever anybody can work out from {them} "
        f"and from what they know already."
    )


def _limit(statements: PersonStatements, totals: int) -> str | None:
    """How much more likely one value of one person can make a conclusion; None if there is no limit for a person."""
    attributes = statements.person.attributes
    covered = [attribute.axis for attribute in attributes if attribute.any_value is not None]
    if not statements.named or not covered or statements.guarantee.person is None:
        return None
    loss = statements.guarantee.usual_loss
    if loss.epsilon is None or (loss.delta or 0) >= 1:
        return None
    plus = f", plus a probability of {three_digits_up(float(loss.delta))}," if loss.delta else ""
    return (
        f"Whatever anybody concludes about one {statements.subject} from the released counts, they are at most "
        f"{_times(loss.epsilon)} as likely to conclude it{plus} as if that {statements.subject}'s "
        f"{_value(covered, partly=len(covered) < len(attributes))} were different"
        f"{_in_records(statements)}{_same_totals(statements, totals)}."
    )


def _times(epsilon: Fraction) -> str:
    """e^epsilon in three digits, rounded up: '2.72 times'."""
    if epsilon > _LARGEST_EXPONENT:
        return f"e^{shown_briefly(epsilon, 8)} times (over 400,000 times: hardly a limit)"
    with localcontext(prec=50):
        factor = as_decimal(epsilon).exp() * (1 + Decimal("1e-40"))  # past the rounding of both
    return f"{rounded_up(factor, 3):,f} times"


def _value(axes: list[str], partly: bool) -> str:
    if len(axes) > NAMED_ATTRIBUTES and not partly:
        return "value of any one attribute"
    *first, last = axes
    return f"value of {', '.join(first)} or {last}" if first else f"value of {last}"


def _in_records(statements: PersonStatements) -> str:
    if not statements.bounded:
        return ""
    number = changes_of(statements.records)
    counted = "the one record that was counted" if number == 1 else f"each of at most {number:,} counted records"
    return f" in {counted}, and no others were counted instead"


def _same_totals(statements: PersonStatements, totals: int) -> str:
    if not totals:
        return ""
    others = " (for which others may have to differ too)" if statements.several_change else ""
    return f", with every kept total the same{others}"


def _conditions(statements: PersonStatements, seeded: bool) -> list[str]:
    """What the limit does not depend on, and where it does not hold."""
    guarantee, unprotected = statements.guarantee, statements.partly_protected()
    sentences = [statements.against()] if statements.against() else []
    if unprotected:
        sentences.append(
            f"There is no such limit where {' or '.join(unprotected)} is not protected, as listed under "
            f"{statements.title!r}."
        )
    if statements.subject == "record":
        sentences.append("For a person with several records these limits multiply.")
    if guarantee.sampling == "estimated" and guarantee.error is None:
        sentences.append("Some noise is drawn by Markov chains, and what that adds is not yet measured.")
    elif guarantee.sampling == "estimated":
        sentences.append("It is estimated, not proved, because some noise is drawn by Markov chains.")
    if seeded:
        sentences.append("It does not hold against anybody who knows the seed of the noise.")
    return sentences
