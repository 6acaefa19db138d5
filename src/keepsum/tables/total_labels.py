"""Labels that say that a row is a total, in the languages of statistical offices."""

from __future__ import annotations

import re
import unicodedata

TOTALS = {
    "English and SDMX": (
        "total, totals, grand total, subtotal, sub total, sum, all, overall, all categories, both sexes, all "
        "persons, everyone, _t"
    ),
    "German": "gesamt, insgesamt, gesamtsumme, summe, zusammen, zwischensumme, alle, endsumme",
    "French": "ensemble, totaux, total général, sous total, somme, tous, toutes",
    "Spanish and Portuguese": "total general, suma, todos, todas, ambos sexos, total geral, soma, subtotais",
    "Italian": "totale, totale generale, somma, tutti, tutte, complesso",
    "Dutch": "totaal, eindtotaal, subtotaal, som, allemaal",
    "Danish, Norwegian, Swedish, Finnish": (
        "i alt, ialt, totalt, sum i alt, alla, summa, samtliga, yhteensä, kaikki, alle kjønn"
    ),
    "Polish, Czech, Slovak, Hungarian, Romanian": (
        "ogółem, razem, suma, wszyscy, celkem, součet, spolu, súčet, összesen, mindösszesen, total general"
    ),
    "Croatian, Slovenian, Estonian, Latvian, Lithuanian": "ukupno, sveukupno, skupaj, kokku, kopā, pavisam, iš viso",
    "Greek, Turkish": "σύνολο, γενικό σύνολο, toplam, genel toplam, tümü",
    "Russian, Ukrainian, Bulgarian": "итого, всего, все, сумма, усього, всього, разом, общо, всичко",
    "Arabic, Hebrew, Persian, Hindi, Bengali": (
        "المجموع, مجموع, الإجمالي, الكل, סך הכל, סה״כ, جمع, جمع کل, कुल, योग, মোট"
    ),
    "Chinese": "合计, 总计, 总和, 小计, 全部, 合計, 總計, 總和, 小計",
    "Japanese, Korean": "合計, 総計, 総数, 全体, 小計, 합계, 총계, 소계, 전체",
    "Vietnamese, Thai, Indonesian, Malay, Swahili": (
        "tổng, tổng cộng, tổng số, รวม, ทั้งหมด, jumlah, keseluruhan, jumla"
    ),
}


def is_total(label: object, axis: str) -> bool:
    """Whether a label says that a row is a total over the categories of an axis.

    >>> [is_total(label, "age") for label in ("Total", "TOTAL, all ages", "All ages", "Insgesamt", "Grand Total:")]
    [True, True, True, True, True]
    >>> [is_total(label, "county") for label in ("All Saints", "Totality", "Sumter", "Alle", "合計", 15)]
    [False, False, False, True, True, False]
    """
    if not isinstance(label, str):
        return False
    words = _words(label)
    axis_words = _words(axis)
    return (
        words in _KNOWN
        or words.startswith(("total ", "subtotal "))
        or words.endswith((" total", " subtotal", " totals"))
        or words in (f"all {axis_words}", f"all {axis_words}s", f"all {axis_words[:-1]}ies", f"all {axis_words}es")
    )


def _words(text: str) -> str:
    """Text in lower case, in composed characters, without punctuation."""
    composed = unicodedata.normalize("NFC", text).casefold()
    return " ".join(re.sub(r"[^\w\s]", " ", composed).split())


_KNOWN = frozenset(_words(label) for labels in TOTALS.values() for label in labels.split(", "))
