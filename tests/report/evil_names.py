"""Names of columns that would be markup if nobody took care, and a certificate that has one in every place."""

from markdown_it import MarkdownIt

from report.changed_certificates import certificate

EVIL = [
    "<script>alert(1)</script>", "[x](https://example.org)", "![x](y)", "a`b``c", "# title\n\n- item",
    "**b** _i_ ~~s~~", r"\(x\) $y$ \[z\]", "https://example.org", "www.example.org",
    "a|b", "&amp;", "'quoted\" \\", "`", " ", "\u202eabc",
]  # fmt: skip


def html(text):
    return MarkdownIt("gfm-like", {"linkify": False}).render(text)


def evil(label):
    return certificate(
        "kept", "categories", "several records", "ledger", "carried", "a value not protected", "file attributes",
        {
            "domain.axes.0.name": label, "guarantee.person.attributes.0.axis": label, "domain.taken_from_data": [label],
            "records.unit": label, "ledger.dataset": label, "carried.0.name": label, "carried.0.axis": label,
            "table.attributes": {label: label}, "table.count": label,
            "kept.parts": [
                {"kind": "margin", "axes": [label], "totals": []},
                {"kind": "subsets", "part": 0, "sha256": "0" * 64, "totals": [{"name": label, "value": 1}]},
            ],
        },
    )  # fmt: skip
