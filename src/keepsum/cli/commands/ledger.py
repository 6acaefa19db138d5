"""``keepsum ledger``: budgets, what was spent of them, and whether any entry is missing."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keepsum._progress import doing
from keepsum._saying import Text, arg, marked
from keepsum._text import how_many
from keepsum.cli.declaration import AsJson
from keepsum.cli.screen import done, show_json, shown
from keepsum.cli.screen import show as show_sections
from keepsum.errors import FailedCheckError, InputError
from keepsum.specs.faces import SHELL, in_shell, sections_in

if TYPE_CHECKING:
    from keepsum.ledger.entries import Budget
    from keepsum.ledger.state import Dataset
    from keepsum.tables.domain import Domain

HELP = """Keep account of all releases of a dataset: each is charged to its budget before its noise is drawn.

Examples:

    keepsum ledger init ledger.db --dataset pop2010 --budget 1.0

    keepsum release counts.csv --count n --keep county --epsilon 0.25 --output released.csv --ledger ledger.db

    keepsum ledger show ledger.db

Nothing in a ledger is a count. What its total means, also for a lawyer, is in docs/ledger.md.
"""
INIT = """Declare a dataset and its budget; the ledger is created if there is none.

Examples:

    keepsum ledger init ledger.db --dataset pop2010 --budget 1.0

    keepsum ledger init ledger.db --dataset visits --budget 2 --budget-delta 1e-6

    keepsum ledger init ledger.db --dataset pop2020 --budget-rho 0.5 --domain domain.toml --within county:state

The budget is the epsilon of one person, for a change of any one attribute under the kept totals of all releases. Losses
add up; Gaussian noise needs a --budget-delta, or a --budget-rho. With --per-unit it is per unit of l1 distance.

Releases of different tables are put together: if their kept totals fix a cell that none fixes alone, the release is
refused. Give --domain, the dataset's full cross-classification, for that; keepsum ledger domain declares it later, or
says that all tables count the same people.
"""
BUDGET = """Change the budget of a dataset. The ledger keeps the old one too.

Examples:

    keepsum ledger budget ledger.db --dataset pop2010 --budget 1.5 --note "decided by the board on 1 March"

A delta that is not given stays as it was. A budget is of one person; where it was per unit of distance, --per-unit or
--per-person says which it is now, and whoever changes that gives all its numbers.
"""
DOMAIN = """Declare what the tables of a dataset are tables of, after it was entered.

Examples:

    keepsum ledger domain ledger.db --dataset pop2010 --domain domain.toml --within county:state

    keepsum ledger domain ledger.db --dataset pop2010 --same-people

--same-people says that every table counts the same people, each of whom has one category of each axis. The cells are
then those of all axes together, as long as axes of one name have the same categories in every table. Otherwise declare
all categories with --domain. Every table so far must be one of these cells, and what is spent never becomes less.
"""
WITHDRAW = """Mark a release as a mistake that is not to be used. It stays charged, because it was seen.

Examples:

    keepsum ledger withdraw ledger.db released.csv --note "children counted twice"

    keepsum ledger withdraw ledger.db --entry 6

The ledger keeps both. keepsum verify released.csv --ledger ledger.db then fails, and says why.
"""
SHOW = """Show budgets, what is spent and left, what that means for one person, and every release.

Examples:

    keepsum ledger show ledger.db

    keepsum ledger show ledger.db --dataset pop2010 --json

It reads the ledger and changes nothing.
"""
CHECK = """Check that no entry was changed, removed or inserted.

Examples:

    keepsum ledger check ledger.db

    keepsum ledger check ledger.db --against released.csv

With --head HASH the hash of the last entry must be the one that was noted down; check prints it.

An end that was cut off, or an older copy that was restored, shows only against published certificates, or against the
number and hash of the last entry, if somebody noted them down. The exit status is 1 if anything is wrong.
"""
EXPORT = """Write all entries as lines of JSON, with the hashes that chain them.

Examples:

    keepsum ledger export ledger.db > entries.jsonl

This is for an auditor: nothing in it is a count.
"""
IMPORT = """Charge a release that was made before, or without this ledger, from its certificate.

Examples:

    keepsum ledger import ledger.db released.csv --dataset pop2010

The release must verify, with its table; --unverified takes the word of a certificate alone, and show says so. It is
charged even if the budget does not allow for it, because it has happened.
"""

NOT_STATED = "not stated: "
INSTEAD = f", or use a budget per unit of distance, {arg.per_unit:with}"
NOT_COVERED = "An end that was cut off or rewritten shows only --against certificates, or a noted --head."

LedgerFile = Annotated[Path, typer.Argument(help="The file of the ledger.", metavar="LEDGER")]
DatasetName = Annotated[str | None, typer.Option("--dataset", help="The dataset.", metavar="NAME")]
Epsilon = Annotated[
    str | None, typer.Option("--budget", help="The epsilon of one person, in all releases.", metavar="E")
]
Delta = Annotated[str | None, typer.Option("--budget-delta", help="The delta that may go with it.", metavar="D")]
Rho = Annotated[str | None, typer.Option("--budget-rho", help="Instead: the rho (zCDP) of one person.", metavar="R")]
PerUnit = Annotated[bool, typer.Option("--per-unit", help="The budget is per unit of l1 distance.")]
DomainFile = Annotated[
    str | None, typer.Option("--domain", help="TOML file with all categories of the dataset.", metavar="FILE")
]
Nested = Annotated[
    list[str] | None,
    typer.Option("--within", help="A nested axis and its parent: county:state.", metavar="CHILD:PARENT"),
]
NoteText = Annotated[str | None, typer.Option("--note", help="Who decided the budget, and why.", metavar="TEXT")]


def add(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(help=HELP, invoke_without_command=True, rich_markup_mode=app.rich_markup_mode)
    group.callback()(_help)
    group.command("init", help=INIT)(init)
    group.command("budget", help=BUDGET)(budget)
    group.command("domain", help=DOMAIN)(domain)
    group.command("withdraw", help=WITHDRAW)(withdraw)
    group.command("show", help=SHOW)(show)
    group.command("check", help=CHECK)(check)
    group.command("export", help=EXPORT)(export)
    group.command("import", help=IMPORT)(import_)
    app.add_typer(group, name="ledger")


def init(
    ledger: LedgerFile,
    dataset: DatasetName = None,
    budget: Epsilon = None,
    budget_delta: Delta = None,
    budget_rho: Rho = None,
    per_unit: PerUnit = False,
    domain: DomainFile = None,
    within: Nested = None,
    note: NoteText = None,
    json: AsJson = False,
) -> None:
    """Declare a dataset and its budget."""
    from keepsum.ledger.ledger import Ledger

    if dataset is None:
        raise InputError(f"{arg.dataset} must name the dataset, such as {arg.dataset} pop2010.")
    if budget is None and budget_rho is None:
        raise InputError(f"{arg.budget} must be given, such as {arg.budget(1.0)}, or {arg.budget_rho}.")
    amount = _budget(budget, budget_delta, budget_rho, per_unit)
    cells = _domain(domain, within)
    existed = os.path.lexists(ledger)
    doing("writing the ledger")
    if existed:
        Ledger.open(ledger).add_dataset(dataset, amount, cells, note)
    else:
        Ledger.create(ledger, amount, dataset=dataset, domain=cells, note=note)
    done(f"Dataset {dataset!r} is in the ledger {shown(ledger)!r}.")
    if json:
        show_json({"ledger": shown(ledger), "created": not existed, "dataset": dataset, "budget": str(amount)})
        return
    typer.echo(f"Ledger   {shown(ledger)}{'' if existed else ', created'}")
    typer.echo(f"Dataset  {dataset}")
    typer.echo(f"Budget   {amount}")
    if cells is not None:
        typer.echo(f"Domain   {repr(cells)[7:-1]}")


def budget(
    ledger: LedgerFile,
    dataset: DatasetName = None,
    budget: Epsilon = None,
    budget_delta: Delta = None,
    budget_rho: Rho = None,
    per_person: Annotated[bool, typer.Option("--per-person", help="The budget is that of one person.")] = False,
    per_unit: PerUnit = False,
    note: NoteText = None,
    json: AsJson = False,
) -> None:
    """Change the budget of a dataset."""
    from keepsum.ledger.ledger import Ledger

    if per_person and per_unit:
        raise InputError(f"{arg.per_person} and {arg.per_unit} must not be given together.")
    doing("reading the ledger")
    opened = Ledger.open(ledger)
    known = opened.dataset(dataset)
    old = known.budget
    if budget is None and budget_rho is None and budget_delta is None and not (per_person or per_unit):
        raise InputError(f"{arg.budget} must be given, such as {arg.budget(1.5)}, or another that changes the budget.")
    _check_unit(old, per_person, per_unit)
    if per_unit == old.per_person:
        option = "--per-unit" if per_unit else "--per-person"
        if budget is None and budget_rho is None:
            raise InputError(
                f"Option {option} must be given {arg.budget:with} or {arg.budget_rho}, because the unit changes."
            )
        if old.delta is not None and budget is not None and budget_delta is None:
            raise InputError(f"Option {option} must be given {arg.budget_delta:with}, because the unit changes.")
    epsilon: Any = budget
    rho: Any = budget_rho
    if epsilon is None and rho is None:
        epsilon, rho = old.epsilon, old.rho
    delta: Any = old.delta if budget_delta is None else budget_delta
    amount = _budget(epsilon, delta, rho, per_unit)
    doing("writing the ledger")
    opened.set_budget(known.name, amount, note)
    done(f"The budget of {known.name!r} is changed.")
    spent = in_shell(str(opened.standing(known.name)))
    if json:
        show_json({"dataset": known.name, "before": str(old), "budget": str(amount), "spent": spent})
        return
    typer.echo(f"Before   {old}")
    typer.echo(f"Budget   {amount}")
    typer.echo(f"Spent    {spent}")


def _check_unit(old: Budget, per_person: bool, per_unit: bool) -> None:
    """Refuse a number alone where budgets are per unit of distance: it would be taken for one person's."""
    if not (old.per_person or per_person or per_unit):
        raise InputError(
            f"A budget must be given {arg.per_unit:with} or {arg.per_person}, because the one so far is {old.unit}. "
            "Add the one that is meant."
        )


def domain(
    ledger: LedgerFile,
    dataset: DatasetName = None,
    domain: DomainFile = None,
    within: Nested = None,
    same_people: Annotated[
        bool, typer.Option("--same-people", help="Instead: every table counts the same people.")
    ] = False,
    note: NoteText = None,
    json: AsJson = False,
) -> None:
    """Declare the cells of a dataset."""
    from keepsum.ledger.ledger import Ledger

    cells = _domain(domain, within)
    if (cells is None) != same_people:
        raise InputError(f"Cells must be given by a file of all categories, or else {arg.same_people}, and not both.")
    doing("reading the ledger")
    opened = Ledger.open(ledger)
    name = opened.dataset(dataset).name
    doing("writing the ledger")
    opened.set_domain(name, cells, same_people=same_people, note=note)
    done(f"The cells of {name!r} are declared.")
    words = None if cells is None else repr(cells)[7:-1]
    spent = in_shell(str(opened.standing(name)))
    if json:
        show_json({"dataset": name, "domain": words, "same_people": same_people, "spent": spent})
        return
    typer.echo(f"Domain   {words or 'all axes of its tables, which count the same people'}")
    typer.echo(f"Spent    {spent}")


def withdraw(
    ledger: LedgerFile,
    release: Annotated[
        Path | None, typer.Argument(help="A released table, its folder, or its certificate.", metavar="RELEASE")
    ] = None,
    entry: Annotated[int | None, typer.Option("--entry", help="Instead: the entry of its charge.", metavar="N")] = None,
    note: NoteText = None,
    json: AsJson = False,
) -> None:
    """Mark a release as withdrawn."""
    from keepsum.ledger.ledger import Ledger
    from keepsum.releasing.destination import read_certificate

    doing("reading the ledger")
    opened = Ledger.open(ledger)
    which = entry if release is None else read_certificate(release)
    if which is None or (entry is not None and release is not None):
        raise InputError(f"A release must be given, or {arg.entry} with the number of its charge, and not both.")
    doing("writing the ledger")
    spend = opened.withdraw(which, note)
    done(f"The release of entry {spend.number:,} is withdrawn.")
    if json:
        show_json({"entry": spend.number, "dataset": spend.entry.dataset, "note": note})
        return
    typer.echo(f"Withdrawn  the release of entry {spend.number:,}; it stays charged")
    typer.echo(f"Spent      {in_shell(str(opened.standing(spend.entry.dataset)))}")


def show(
    ledger: LedgerFile,
    dataset: DatasetName = None,
    all_releases: Annotated[bool, typer.Option("--all", help="Show every release, not only the last ones.")] = False,
    json: AsJson = False,
) -> None:
    """Show budgets and what was spent."""
    from keepsum.ledger.ledger import Ledger
    from keepsum.ledger.showing import dataset_topics

    doing("reading the ledger")
    opened = Ledger.open(ledger)
    names = list(opened.datasets) if dataset is None else [opened.dataset(dataset).name]
    number, head = opened.head
    if json:
        datasets = [_facts(opened.dataset(name)) for name in names]
        show_json({"ledger": shown(ledger), "entries": number, "head": head, "datasets": datasets})
        return
    sections = [("Ledger", [shown(ledger), f"{number:,} entries; the hash of the last is {head}"])]
    for name in names:
        shown_one = opened.dataset(name)
        topics = dataset_topics(shown_one, all_releases)
        sections += [(title, _person(lines, shown_one) if title == "One person" else lines) for title, lines in topics]
    show_sections(sections_in(SHELL, sections))


def _person(lines: list[str], dataset: Dataset) -> list[str]:
    """Why nothing is stated of one person, with options; a budget per unit of distance needs no advice to be one."""
    if not lines[0].startswith(NOT_STATED):
        return lines
    reason = lines[0]
    if not dataset.budget.per_person:
        reason = Text(marked(reason).replace(INSTEAD, "").replace("a budget per person", "the loss of one person"))
    return [in_shell(reason), *lines[1:]]


def _facts(dataset: Dataset) -> dict[str, object]:
    """A dataset for ``--json``, where sentences that advise name options."""
    from keepsum.ledger.showing import dataset_facts

    facts = dataset_facts(dataset)
    person: Any = facts["person"]
    sentences = {"words": in_shell(str(facts["words"]))}
    return facts | sentences | {"person": None if person is None else _person(person, dataset)}


def check(
    ledger: LedgerFile,
    against: Annotated[
        list[Path] | None,
        typer.Option(
            "--against", help="A certificate, the folder of a release, or a released table.", metavar="CERTIFICATE"
        ),
    ] = None,
    head: Annotated[
        str | None, typer.Option("--head", help="A hash of a last entry that was noted down.", metavar="HASH")
    ] = None,
    json: AsJson = False,
) -> None:
    """Check a ledger."""
    from keepsum.ledger.importing import checked
    from keepsum.ledger.store import Store
    from keepsum.releasing.destination import read_certificate

    doing("reading the ledger")
    certificates = [read_certificate(path) for path in against or []]
    store = Store(ledger)
    if not store.is_ledger:
        store.read()  # says what it is instead
    result = checked(store, certificates, head=head)
    problems = [in_shell(problem) for problem in result.problems]
    if json:
        facts: dict[str, Any] = {"ok": result.passed, "entries": result.entries, "head": result.head}
        show_json({**facts, "certificates": result.compared, "problems": problems})
    else:
        if result.entries:
            typer.echo(f"ok      {result.entries:,} entries, each with the hash of the one before it")
        for problem in problems:
            typer.echo(f"FAILED  {problem}")
        if certificates and result.passed:
            one = result.compared == 1
            typer.echo(f"ok      {result.compared:,} certificate{' agrees' if one else 's agree'} with it")
        if result.passed and not certificates and head is None:
            typer.echo(f"        {NOT_COVERED}")
        if result.head is not None:
            typer.echo(f"Head    {result.head}")
    if not result.passed:
        raise FailedCheckError(f"The ledger does not check: {how_many(len(problems), 'problem')}.")


def export(
    ledger: LedgerFile,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A file instead of standard output.", metavar="FILE")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Export all entries."""
    import msgspec

    from keepsum.ledger.store import Store, broken_at
    from keepsum.sources.atomic import check_new, write_file

    if str(output) == "-":
        output = None
    if output is not None:
        check_new(output, force)
        if output.resolve() == ledger.resolve():
            raise InputError("Output must not be the ledger itself. Choose another name.")
    doing("reading the ledger")
    links = Store(ledger).rows()
    lines = b"".join(msgspec.json.encode(link) + b"\n" for link in links)
    if output is None:
        sys.stdout.write(lines.decode())
    else:
        write_file(output, lines, force)
        done(f"The entries are exported: {shown(output)!r}.")
        typer.echo(f"Exported  {shown(output)}")
    broken = broken_at(links)
    if broken is not None:
        raise FailedCheckError(f"All entries are exported, but the chain is broken at entry {broken:,}.")


def import_(
    ledger: LedgerFile,
    releases: Annotated[
        list[Path],
        typer.Argument(
            help="Released tables, folders of releases, or certificates beside their tables.", metavar="RELEASE"
        ),
    ],
    dataset: DatasetName = None,
    unverified: Annotated[
        bool, typer.Option("--unverified", help="Take certificates at their word, where there is no table to verify.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Import releases that were made before."""
    from keepsum.ledger.importing import charge_for, published
    from keepsum.ledger.ledger import Ledger

    doing("reading the ledger")
    opened = Ledger.open(ledger)
    name = opened.dataset(dataset).name
    imported: list[str] = []
    doing("verifying the releases")
    for path in releases:  # what does not verify or fit is refused before any is charged
        certificate, invariants, _ = published(path, None) if not unverified else _at_its_word(path)
        charge_for(certificate, invariants, opened.dataset(name))
    doing("writing the ledger")
    for path in releases:
        if unverified:
            certificate, invariants, _ = _at_its_word(path)
            opened.import_release(certificate, name, invariants)
        else:
            opened.import_release(path, name)
        imported.append(shown(path))
        done(f"Charged: {', '.join(map(repr, imported))}.", cut_off="{done} The others were not charged: {reason}.")
        if not json:
            typer.echo(f"Imported  {shown(path)}")
    standing = opened.standing(name)
    spent = in_shell(str(standing))
    if json:
        show_json({"imported": imported, "dataset": name, "spent": spent})
    else:
        typer.echo(f"Spent     {spent}")


def _at_its_word(path: Path) -> tuple[Any, bytes | None, bool]:
    from keepsum.releasing.destination import read_statement

    return *read_statement(path), False


def _help(context: typer.Context) -> None:
    """Show the help if no command is named."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _budget(epsilon: Any, delta: Any, rho: Any, per_unit: bool) -> Budget:
    from keepsum.ledger.entries import Budget

    return Budget.per_unit(epsilon, delta, rho) if per_unit else Budget(epsilon, delta, rho)


def _domain(file: str | None, within: list[str] | None) -> Domain | None:
    from keepsum.sources.declarations import read_domain
    from keepsum.specs.option import parse_nesting
    from keepsum.tables.domain import Domain

    nesting = parse_nesting(within)
    if file is None:
        if nesting:
            raise InputError(f"{arg.within} must be given {arg.domain('FILE'):with}.")
        return None
    return Domain(read_domain(file), nesting)
