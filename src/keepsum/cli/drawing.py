"""One release of a call is charged, drawn and written, and what is said if a step of that fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import keepsum as ks
from keepsum._signals import let_through
from keepsum._threads import threads_of
from keepsum.cli.preparing import Call, Ready
from keepsum.cli.screen import Done, done, note, progress, warning
from keepsum.cli.standard_output import check_reader, deliver_release, record_release

if TYPE_CHECKING:
    from keepsum.ledger.ledger import Receipt
    from keepsum.releasing.release import Drawn

STAYS_CHARGED = "The release failed after it was charged, and stays charged: entry {:,} of dataset {!r}."


def draw_and_write(one: Ready, call: Call, after: str | None) -> tuple[Drawn, str | None]:
    """Draw a release and write it; ``after`` is what is said if something fails after that, unless it is the last."""
    from keepsum.releasing.destination import put
    from keepsum.releasing.signing import sign

    before = Done.words
    place = one.place
    check_reader()
    with place.claimed(call.force) as orphan:  # of two processes that would write there, only one draws
        with _charged(one, call.seed is not None) as receipt:
            with let_through(), progress() as step:
                step("drawing the noise")
                rng = None if call.seed is None else ks.rng(seed=call.seed)
                drawn = one.prepared.draw(rng, threads_of(call.threads), None if receipt is None else receipt.record)
                released, problem = _published(drawn, one, step)
            if one.key is not None:  # before it is written, so that what is said of the release is true of its file
                released = replace(released, certificate=sign(released.certificate, one.key))
            file = put(released, place, None, call.force, orphan)
            record_release(place, released.certificate.ledger)
            if receipt is not None:
                receipt.released(released.certificate.table.sha256)
        if before is not None or after is not None:
            done(" ".join(filter(None, [before, Done.words])), cut_off=after or Done.cut_off)
    deliver_release(place, file, released.certificate.ledger)
    if orphan:
        warning(f"A certificate without a table, left by an interrupted release, was replaced: {place.certificate}.")
    return released, problem


@contextmanager
def _charged(one: Ready, seeded: bool) -> Iterator[Receipt | None]:
    """Charge a release to its ledger, if it has one; whatever fails then, it stays charged, and that is said."""
    if one.ledger is None:
        yield None
        return
    with ExitStack() as stack:
        with one.job.located("ledger"):
            dataset = one.job.spec.ledger.dataset
            receipt = stack.enter_context(one.ledger.charged(one.prepared.plan, dataset, seeded))
        try:
            yield receipt
        except BaseException:
            if receipt.sha256 is None:
                note(STAYS_CHARGED.format(receipt.record.entry, receipt.record.dataset))
            raise


def _published(drawn: Drawn, one: Ready, step: Callable[[str], None]) -> tuple[Drawn, str | None]:
    """What is to be published, and why it is what was drawn although no negative counts are wanted, if so.

    What was drawn is published in any case: to draw again until a solver succeeds would change the law of the noise.
    """
    from keepsum.releasing.postprocess import without_negative

    if one.nearest_in is None:
        return drawn, None
    step("looking for the nearest table without negative counts")
    plan = one.prepared.plan
    try:
        return without_negative(drawn, plan.structure, plan.invariants, one.nearest_in), None
    except ks.PlanError as error:
        return drawn, str(error)
