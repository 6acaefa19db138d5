"""``--output -``: the table on standard output, and everything else that a command prints on standard error."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keepsum.cli.screen import done, shown
from keepsum.errors import InputError

if TYPE_CHECKING:
    from keepsum.releasing.destination import Destination
    from keepsum.releasing.facts import LedgerRecord

STANDARD_OUTPUT = "-"
INCOMPLETE = "The table on standard output may be incomplete: {reason}. {done}"
CERTIFICATE_STAYS = "Its certificate is written: {}. {}"
SPENT = "If anybody may have seen a part of the table, that was a release, and another one adds to the privacy loss."
FREE = "Run the command again: it costs no privacy."


class Reserved:
    """Standard output, while it is reserved for a table."""

    stream: Any = None


@contextlib.contextmanager
def reserved() -> Iterator[None]:
    """Reserve standard output for a table: whatever else is printed goes to standard error, a prompt too."""
    if Reserved.stream is not None:  # by the caller
        yield
        return
    Reserved.stream = sys.stdout
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        Reserved.stream = None


def destination(output: str, certificate: Path | None, kind: str = "csv") -> Destination:
    """Where a release is to be written, by the options --output and --certificate."""
    from keepsum.releasing.destination import Destination

    if output != STANDARD_OUTPUT:
        if certificate is not None:
            raise InputError(
                "Option --certificate must be given with --output - only: otherwise the certificate is written beside "
                "the table. Leave it out."
            )
        return Destination.at(output, kind)
    if certificate is None:
        raise InputError(
            "Option --certificate must be given with --output -, such as --certificate released.certificate.json."
        )
    return Destination.standard_output(certificate)


def check_free(json: bool, files: Iterable[Path | str] = ()) -> None:
    """Refuse a standard output that a table cannot be written to; it must not be one of the files."""
    if json:
        raise InputError("Option --json must not be given with --output -: both would be on standard output.")
    if Reserved.stream is None or getattr(Reserved.stream, "name", None) == os.devnull:  # closed from the start
        raise InputError("Standard output must be open for --output -, but it is closed. Nothing was released.")
    for file in files:
        if _is_stream(Path(file)):
            raise InputError(f"Standard output must not be redirected to {shown(file)!r}. Choose another file.")
    check_reader()


def check_reader() -> None:
    """Refuse a pipe that nobody reads, as before a mistyped command: no noise must be drawn for it."""
    number = None if Reserved.stream is None else _number()
    if number is None or not hasattr(select, "poll"):
        return
    poll = select.poll()
    poll.register(number, 0)
    if any(event & (select.POLLERR | select.POLLNVAL) for _, event in poll.poll(0)):
        raise InputError("Standard output must be read by somebody, but it is closed. Nothing was released.")


def deliver(table: bytes) -> None:
    """Write a table to standard output, past all buffers: nothing is left that the end of the process would write."""
    stream = Reserved.stream.buffer
    raw, rest = getattr(stream, "raw", stream), memoryview(table)
    while rest:
        written = raw.write(rest)
        if written is None:  # a pipe that is full and does not wait
            raise BlockingIOError(errno.EAGAIN, "it is a pipe that does not wait for its reader")
        rest = rest[written:]
    number = _number()
    if number is not None and stat.S_ISREG(os.fstat(number).st_mode):
        os.fsync(number)  # some file systems notice only now that they are full


def record_release(place: Destination, charged: LedgerRecord | None = None, cost: str = SPENT) -> None:
    """Record, when the files of a release are written, what is true even if its table cannot be delivered."""
    certificate, ledger = repr(shown(place.certificate)), _ledger(charged)
    if place.is_stream:
        done(CERTIFICATE_STAYS.format(certificate, cost) + ledger, cut_off=INCOMPLETE)
    else:
        done(f"The release is written: {shown(place.table)!r} with its certificate {certificate}.{ledger}")


def deliver_release(place: Destination, table: bytes, charged: LedgerRecord | None = None) -> None:
    """Write the table of a release that goes to standard output."""
    if place.is_stream:
        deliver(table)
        written = f"its table to standard output, its certificate to {shown(place.certificate)!r}."
        done(f"The release is written: {written}{_ledger(charged)}")


def _ledger(charged: LedgerRecord | None) -> str:
    return "" if charged is None else f" It is charged as entry {charged.entry:,} of the ledger."


def _number() -> int | None:
    """The descriptor of standard output, if it has one."""
    try:
        return int(Reserved.stream.fileno())
    except (OSError, ValueError):
        return None


def _is_stream(file: Path) -> bool:
    """Whether standard output is redirected to this file."""
    number = _number()
    with contextlib.suppress(OSError, ValueError):
        return number is not None and file.is_file() and os.path.samestat(os.fstat(number), file.stat())
    return False
