"""Labels that say that a row is a total, in the languages of statistical offices."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

# At the end of a label: superscripts, a number or letter in brackets, a digit after a word of four letters or more.
_FOOTNOTE = re.compile(r"([¹²³⁰⁴-⁹ᵃ-ᶻ]{1,3}|[(\[]\s*([0-9]{1,2}|[a-z])\s*[)\]]|(?<=[^\W\d_]{4})[0-9])\W*\Z")
# Labels that are totals by themselves.
TOTALS = {
    "English and SDMX": "tot, ttl, sum, all, overall, everyone, everybody, combined, all combined, statewide, "
    "nationwide, _t",
    "German": "gesamtergebnis, summe, gesamtsumme, zwischensumme, endsumme, zusammen, alle",
    "French": "ensemble, ensemble de la population, totaux, somme, tous, toutes, tous sexes, les deux sexes",
    "Spanish and Portuguese": "suma, soma, todos, todas, ambos sexos, ambos os sexos",
    "Italian": "somma, tutti, tutte, complesso, in complesso",
    "Dutch": "som, allemaal",
    "Danish, Norwegian, Swedish, Finnish": "i alt, ialt, sum i alt, hele landet, alla, summa, samtliga, "
    "hela landet, kaikki, koko maa",
    "Polish, Czech, Slovak, Hungarian, Romanian": "suma, wszyscy, součet, spolu, súčet",
    "Greek, Turkish": "σ, ∑, tümü, hepsi",
    "Russian, Ukrainian, Bulgarian": "итог, все, сумма, оба пола, разом, всичко",
    "Arabic, Hebrew, Persian, Hindi, Bengali": "الكل, جمع, جمع کل, סך הכל, סה״כ, योग, सभी",
    "Chinese, Japanese, Korean": "全部, 全体, 전체, 계, 計, 计, 男女計, 男女计",
    "Vietnamese, Thai, Indonesian, Malay, Swahili": "tổng, tổng cộng, tổng số, รวม, ทั้งหมด, keseluruhan, semua, jumla",
}
# Words that make a total of any label which begins or ends with them: "Illinois total", "Total: men", "Grand total".
ANYWHERE = {
    "English": "total, totals, subtotal, subtotals",
    "German, Dutch": "gesamt, insgesamt, totaal, eindtotaal, subtotaal",
    "Italian, Spanish, Portuguese": "totale, totales, totais, subtotais",
    "Danish, Norwegian, Swedish, Finnish, Icelandic": "totalt, yhteensä, samtals",
    "Polish, Czech, Hungarian": "ogółem, razem, celkem, összesen, mindösszesen",
    "Croatian, Slovenian, Estonian, Latvian, Lithuanian": "ukupno, sveukupno, skupaj, kokku, kopā, pavisam, viso",
    "Greek, Turkish": "σύνολο, toplam",
    "Russian, Ukrainian, Bulgarian, Macedonian": "итого, всего, усього, всього, общо, вкупно",
    "Arabic, Persian, Hindi, Bengali": "المجموع, مجموع, الإجمالي, कुल, মোট",
    "Indonesian, Malay": "jumlah",
}
# The same in languages that put no spaces between words.
ENDINGS = [
    "合计", "总计", "总和", "总数", "小计", "合計", "總計", "總和", "總數", "小計", "総計", "総数",
    "합계", "총계", "소계",
]  # fmt: skip
# What begins with "total" or "subtotal" and is none, by any of its words, or by their endings.
NO_TOTALS = (
    "knee, hip, shoulder, elbow, ankle, joint, replacement, loss, losses, blindness, deafness, hearing, eclipse, "
    "parenteral, irradiation, cholesterol, bilirubin, protein"
)
NO_TOTALS_ENDINGS = ("ectomy", "ectomies", "plasty", "plasties")
# Labels that are totals on an axis of this name: of sexes, T is Eurostat's.
OF_SEXES, SEXES = ("sex", "gender"), ("t", "persons", "people", "both")
# Words before what there are several of: "All ages", "Tous les départements", and what that may be besides the axis.
ALL = (
    "all, all the, both, alle, beide, tous les, toutes les, todos los, todas las, todos os, todas as, tutti i, tutte le"
)
KINDS = (
    "ages, age groups, sexes, genders, races, races and ethnicities, ethnicities, origins, persons, people, "
    "population, residents, inhabitants, households, families, adults, students, pupils, patients, employees, workers, "
    "areas, counties, states, regions, districts, municipalities, countries, provinces, places, years, months, groups, "
    "categories, classes, types, levels, items, units, causes, industries, sectors, occupations, products, "
    "geschlechter, kjønn, kön, altersgruppen, âges, edades, età"
)


def is_total(label: object, axis: str, parent: object = None) -> bool:
    """Whether a label says that a row is a total over the categories of an axis, or of its parent's category.

    >>> [is_total(label, "age_group") for label in ("Total", "TOTAL: men", "All ages", "all age groups", "Insgesamt")]
    [True, True, True, True, True]
    >>> [is_total(label, "county") for label in ("All Saints", "Totality", "Sumter", "All others", "合計", 15)]
    [False, False, False, False, True, False]
    >>> [is_total(label, "procedure") for label in ("Total procedures", "Total¹", "Total knee replacement")]
    [True, True, False]
    >>> is_total("All Illinois", "county", parent="Illinois"), is_total("Illinois", "county", parent="Illinois")
    (True, False)
    """
    if not isinstance(label, str):
        return False
    words = _words(label)
    first, last = words.partition(" ")[0], words.rpartition(" ")[2]
    if words in _KNOWN or last in _ANYWHERE or first.endswith(_ENDINGS) or last.endswith(_ENDINGS):
        return True
    if first in _ANYWHERE and not _is_term(words):
        return True
    if words in SEXES and not {*_phrases(axis)}.isdisjoint(OF_SEXES):
        return True
    if isinstance(parent, str) and words in (f"all {_words(parent)}", f"{_words(parent)} all"):
        return True
    if not words.startswith(_ALL):
        return False
    several = words.removesuffix(" combined")
    rests = [several.removeprefix(every) for every in _ALL if several.startswith(every)]
    return any(rest in _KINDS or _is_plural(rest, phrase) for rest in rests for phrase in _phrases(axis))


def _is_term(words: str) -> bool:
    """Whether a label that begins with a word such as "total" is a term: "Total hip arthroplasty"."""
    return any(word in _NO_TOTALS or word.endswith(NO_TOTALS_ENDINGS) for word in words.split()[1:])


def may_name_parent(label: object) -> bool:
    """Whether a label is "all" of something."""
    words = _words(label) if isinstance(label, str) else ""
    return words.startswith("all ") or words.endswith(" all")


def _phrases(axis: str) -> Iterator[str]:
    """What the name of an axis may call one of its categories: of "county_name", "county" as well."""
    words = _words(re.sub(r"([a-z])([A-Z])", r"\1 \2", axis)).split()
    for first in range(len(words)):
        for last in range(first, len(words)):
            yield " ".join(words[first : last + 1])
    yield ""


def _is_plural(word: str, singular: str) -> bool:
    """Whether a word may be the plural of another, in English and its like.

    >>> _is_plural("counties", "county"), _is_plural("races", "race"), _is_plural("saints", "county")
    (True, True, False)
    """
    return len(singular) > 2 and word.startswith(singular[:-1]) and 0 <= len(word) - len(singular) <= 2


def _words(text: str) -> str:
    r"""Text in lower case, in the usual forms of characters, without punctuation and marks of footnotes.

    >>> _words(" Grand-Total: "), _words("ＴＯＴＡＬ"), _words("sub_total"), _words("_T"), _words("∑")
    ('grand total', 'total', 'sub total', '_t', 'σ')
    >>> _words("Total¹"), _words("TOTAL1"), _words("All ages (a)"), _words("Sum 41"), _words("Ge\u00adsamt")
    ('total', 'total', 'all ages', 'sum 41', 'gesamt')
    """
    text = _FOOTNOTE.sub("", text)
    usual = text.lower() if text.isascii() else _usual(text)
    plain = " ".join(re.sub(r"[\W_]", " ", usual).split())
    return "_t" if plain == "t" and "_" in usual else plain


def _usual(text: str) -> str:
    """Text in lower case without compatibility forms (full width), vowel signs and soft hyphens, which split words."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text.replace("∑", "Σ")).casefold())
    return "".join(character for character in folded if unicodedata.category(character) not in ("Mn", "Mc", "Me", "Cf"))


def _list(labels: str) -> tuple[str, ...]:
    return tuple(_words(label) for label in labels.split(", "))


_NO_TOTALS = frozenset(_list(NO_TOTALS))
_ALL, _KINDS = tuple(f"{words} " for words in _list(ALL)), frozenset(_list(KINDS))
_ANYWHERE = frozenset(word for labels in ANYWHERE.values() for word in _list(labels))
_ENDINGS = tuple(map(_words, ENDINGS))
_KNOWN = frozenset(word for labels in TOTALS.values() for word in _list(labels))
