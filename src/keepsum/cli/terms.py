"""The library speaks of calls and arguments; the shell shows its commands and options instead."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from keepsum.specs.quoting import joined, listed, pair

# Arguments in the library's messages, as options of the shell.
IN_SHELL = {
    "with count=": "with --count",
    "Pass count=": "Pass --count ",
    "Add delta=, for example 1e-6": "Add --delta 1e-6, for example",
    "with accept_delta=": "with --accept-delta ",
    "cross-classification with domain=": "cross-classification with keepsum ledger init --domain",
    "domain=": "--categories or --domain",
    "ks.Ledger.create(path, budget=...)": "keepsum ledger init",
    "ledger.check(against=certificates)": "keepsum ledger check --against CERTIFICATE",
    "ledger.check()": "keepsum ledger check",
    "ledger.set_budget": "keepsum ledger budget",
    "with dataset=": "with --dataset",
    "its ledger: ledger=, or": "its ledger: --ledger, or",
    "with axes=": "with --axes",
    "with drop=": "with --drop",
    "with wide=": "with --wide",
    "within=": "--within",
    "keep_order=True": "--keep-order",
    "dense=True": "--dense",
    "quote_formulas=True": "--quote-formulas",
    "drop_rows=": "--drop-rows",
    "carry=": "--carry",
    "structure= and flags= must": "Options --structure and --flag must",
    "flags= must": "Option --flag must",
    "with flags=": "with --flag",
    "in flags=": "in --flag",
    "out sheet=": "out --sheet",
    "with sheet=": "with --sheet",
    "out encoding=": "out --encoding",
    "encoding= must": "Option --encoding must",
    "pass encoding=": "pass --encoding ",
    "Pass encoding=": "Pass --encoding ",
    "in focus= must": "in --focus must",
    "Argument focus= must": "Option --focus must",
    "Argument cell_share= must": "Option --cell-share must",
    "Keys of focus= must": "Totals of --focus must",
    "plan.explain()": "keepsum plan",
    "plan.certify()": "keepsum convergence",
    "plan.pinned lists them": "keepsum plan lists them",
    "with force=True": "with --force",
    "with of='largest'": "with --target largest",
    "Pass patient=True": "Pass --patient",
    "with bins=": "with --bins",
    "by bins=": "by --bins",
    "with missing=": "with --missing",
    "with by=": "with --by",
    "Count the records in one of its tables: ks.tabulate(source, by=[...], table=...)": "Count the records in one of "
    "its tables: --table NAME --by COLUMNS",
    "with table=": "with --table",
    "Check table=": "Check --table",
    "table= must": "--table must",
    "with unit= and max_rows_per_unit=,": "with --unit and --max-rows-per-unit,",
    "with per_unit": "with --per-unit",
    "unit= and max_rows_per_unit= must": "--unit and --max-rows-per-unit must",
    "max_rows_per_unit=1 alone": "--max-rows-per-unit 1 alone",
    "accept each by its name in accept_pinned= (or 'all')": "accept each with --accept-pinned NAME (or all)",
}
SPOKEN = (
    "Guarantee",
    "Other noise",
    "Warning",
    "Spent",
    "Ledger",
)  # may name calls, and have no label in them
_NESTING, _ROWS = re.compile(r"within=(\{[^{}]*\})"), re.compile(r"drop_rows=(\{[^{}]*\})")
_CARRY = re.compile(r"carry=(\{[^{}]*\})")
_DROP = re.compile(r"with drop=(\[[^\[\]]*\])")
_CALL = re.compile(r"ks\.(?:Laplace|Gaussian)(?:\.per_unit)?\([^()]*\)")


def in_shell_terms(message: str) -> str:
    """A message of the library with options instead of arguments.

    >>> in_shell_terms("l2 Laplace with ks.Laplace('0.5', norm='l2', attributes=['a', 'b c'])")
    "l2 Laplace with --epsilon 0.5 --norm l2 --attributes 'a,b c'"
    >>> in_shell_terms("ks.Gaussian.per_unit(rho=0.1)")
    '--mechanism gaussian --rho 0.1 --per-unit'
    """
    message = _CALL.sub(lambda call: _options(call.group()), message)
    message = _NESTING.sub(lambda match: _pairs(match[1], "--within", joined), message)
    message = _CARRY.sub(lambda match: _pairs(match[1], "--carry", joined), message)
    message = _ROWS.sub(lambda match: _pairs(match[1], "--drop-rows", _rows), message)
    message = _DROP.sub(lambda match: f"with --drop {shlex.quote(listed(ast.literal_eval(match[1])))}", message)
    for argument, option in IN_SHELL.items():
        message = message.replace(argument, option)
    return message


def _pairs(mapping: str, option: str, joined: Callable[[str, Any], str]) -> str:
    """A mapping in a message as options of the shell, quoted where the shell needs it."""
    pairs = ast.literal_eval(mapping)
    return " ".join(f"{option} {shlex.quote(joined(key, value))}" for key, value in pairs.items())


def _rows(column: str, labels: Any) -> str:
    return pair(column, labels if isinstance(labels, list) else [labels])


def sections_in_shell_terms(sections: Iterable[tuple[str, Sequence[str]]]) -> list[tuple[str, list[str]]]:
    """Sections of a plan, where those that recommend or refer to something name options; labels stay as they are."""
    return [
        (title, [in_shell_terms(line) for line in lines] if title in SPOKEN else list(lines))
        for title, lines in sections
    ]


def _options(text: str) -> str:
    """The options that request the same noise as a call; the call as it is if it is not one after all."""
    try:
        call: Any = ast.parse(text, mode="eval").body
        arguments = {"epsilon": call.args[0]} if call.args else {}
        arguments |= {keyword.arg: keyword.value for keyword in call.keywords}
        values = {name: _value(value, text) for name, value in arguments.items()}
    except (SyntaxError, ValueError):
        return text
    options = ["--mechanism gaussian"] if text.startswith("ks.Gaussian") else []
    for name, value in values.items():
        options.append(f"--{name} {shlex.quote(value)}")
    options += ["--per-unit"] if text.partition("(")[0].endswith(".per_unit") else []
    return " ".join(options)


def _value(node: ast.expr, text: str) -> str:
    """A number as it is written, a text, or a list of texts."""
    value = ast.literal_eval(node)
    if isinstance(value, (list, str)):
        return value if isinstance(value, str) else listed(value)
    return ast.get_source_segment(text, node) or str(value)
