"""Text of a certificate inside Markdown: names that somebody else chose must do nothing there.

The registry renders its strings as Markdown with LaTeX, and LaTeX is looked for after Markdown has removed its
escapes. So names stand in code spans there, which both leave alone; elsewhere it is enough to escape the text.
"""

from __future__ import annotations

import re

import msgspec

from keepsum._text import printable
from keepsum.releasing.certificate import CertificateRecord
from keepsum.releasing.facts import MarginRecord, PartRecord
from keepsum.tables.invariants import UNNAMED

_ACTIVE = re.compile(r"([\\`*_{}\[\]<>#&~|$!@])")


def escaped(text: str) -> str:
    r"""Text on one line that Markdown shows as it is, unless it begins a line.

    >>> print(escaped("<b>a_b</b>\n# [x](https://x)"))
    \<b\>a\_b\</b\>\\n\# \[x\](https\://x)
    """
    text = _ACTIVE.sub(r"\\\1", printable(text))
    return re.sub(r"(?i)\b(www)\.", r"\1\\.", text.replace("://", r"\://"))


class Code(str):
    """A code span: what sentences put in quotes needs none there, because it stands out by itself."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def code(text: str) -> Code:
    """Text as a code span.

    >>> print(code("county"), code("a`b"))
    `county` `` a`b ``
    """
    text = printable(text)
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    room = " " if "`" in text or not text.strip() or text != text.strip() else ""
    return Code(f"{fence}{room}{text}{room}{fence}")


def marked(certificate: CertificateRecord) -> CertificateRecord:
    """The certificate with every name that the curator chose as a code span, for sentences that are made from it."""
    replace = msgspec.structs.replace
    domain, person = certificate.domain, certificate.guarantee.person
    records, ledger = certificate.records, certificate.ledger
    axes = [
        replace(axis, name=code(axis.name), parent=None if axis.parent is None else code(axis.parent))
        for axis in domain.axes
    ]
    attributes = [replace(attribute, axis=code(attribute.axis)) for attribute in person.attributes]
    return replace(
        certificate,
        table=replace(
            certificate.table,
            count=code(certificate.table.count),
            attributes={code(name): code(value) for name, value in certificate.table.attributes.items()},
        ),
        domain=replace(domain, axes=axes, taken_from_data=list(map(code, domain.taken_from_data))),
        carried=[replace(column, name=code(column.name), axis=code(column.axis)) for column in certificate.carried],
        kept=replace(certificate.kept, parts=list(map(_marked_part, certificate.kept.parts))),
        guarantee=replace(certificate.guarantee, person=replace(person, attributes=attributes)),
        records=records if records is None or records.unit is None else replace(records, unit=code(records.unit)),
        ledger=None if ledger is None else replace(ledger, dataset=code(ledger.dataset)),
        software={code(name): code(version) for name, version in certificate.software.items()},
    )


def _marked_part(part: PartRecord) -> PartRecord:
    if isinstance(part, MarginRecord):
        return msgspec.structs.replace(part, axes=list(map(code, part.axes)))
    totals = [
        total if UNNAMED.fullmatch(total.name) else msgspec.structs.replace(total, name=code(total.name))
        for total in part.totals
    ]
    return msgspec.structs.replace(part, totals=totals)
