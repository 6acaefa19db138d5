"""``keepsum ledger``: budgets, what was spent of them, and whether any entry is missing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keepsum.cli.screen import FailedError, done, show_json, shown
from keepsum.cli.screen import show as show_sections
from keepsum.cli.terms import sections_in_shell_terms
from keepsum.errors import InputError

if TYPE_CHECKING:
    from keepsum.ledger.budget import Budget
    from keepsum.tables.domain import Domain

HELP = """Keep account of all releases of a dataset: each is charged to its budget before its noise is drawn.

    keepsum ledger init ledger.db --dataset pop2010 --budget 1.0

    keepsum release counts.csv --count n --keep county --epsilon 0.25 --output released.csv --ledger ledger.db

    keepsum ledger show ledger.db
"""
INIT = """Declare a dataset and its budget; the ledger is created if there is none.

Examples:

    keepsum ledger init ledger.db --dataset pop2010 --budget 1.0

    keepsum ledger init ledger.db --dataset visits --budget 2 --budget-delta 1e-6 --per-person

    keepsum ledger init ledger.db --dataset pop2020 --budget-rho 0.5 --domain domain.toml --within county:state

The budget is epsilon per unit of l1 distance, or per person. Losses of all releases add up; Gaussian noise needs a
--budget-delta, or a --budget-rho.

With --domain, the dataset's full cross-classification, releases of different tables of it are put together: if their
kept totals fix a cell that none fixes alone, the release is refused. Without it, only tables with the same cells are.
"""
BUDGET = """Change the budget of a dataset. The ledger keeps the old one too.

    keepsum ledger budget ledger.db --dataset pop2010 --budget 1.5
"""
SHOW = """Show budgets, what is spent and left, what that means for one person, and every release.

    keepsum ledger show ledger.db

    keepsum ledger show ledger.db --dataset pop2010 --json
"""
CHECK = """Check that no entry was changed, removed or inserted.

    keepsum ledger check ledger.db

    keepsum ledger check ledger.db --against released.certificate.json --against out/

An end that was cut off, or an older copy that was restored, shows only against published certificates, or against the
number and hash of the last entry, if somebody noted them down. The exit status is 1 if anything is wrong.
"""
EXPORT = """Write all entries as lines of JSON, with the hashes that chain them.

    keepsum ledger export ledger.db > entries.jsonl
"""
IMPORT = """Charge a release that was made before, or without this ledger, from its certificate.

    keepsum ledger import ledger.db released.certificate.json --dataset pop2010

It is charged even if the budget does not allow for it, because it has happened.
"""

LedgerFile = Annotated[Path, typer.Argument(help="The file of the ledger.", metavar="LEDGER", show_default=False)]
DatasetName = Annotated[str | None, typer.Option("--dataset", help="The dataset.", metavar="NAME", show_default=False)]
Epsilon = Annotated[
    str | None,
    typer.Option("--budget", help="Epsilon per unit of l1 distance, or per person.", metavar="E", show_default=False),
]
Delta = Annotated[
    str | None,
    typer.Option("--budget-delta", help="The delta that may go with it.", metavar="D", show_default=False),
]
Rho = Annotated[
    str | None,
    typer.Option(
        "--budget-rho", help="Instead: rho (zCDP) at l1 distance 1, or per person.", metavar="R", show_default=False
    ),
]
PerPerson = Annotated[bool, typer.Option("--per-person", help="The budget is per person.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def add(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(help=HELP, invoke_without_command=True, rich_markup_mode=app.rich_markup_mode)
    group.callback()(_help)
    group.command("init", help=INIT)(init)
    group.command("budget", help=BUDGET)(budget)
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
    per_person: PerPerson = False,
    domain: Annotated[
        str | None,
        typer.Option(
            "--domain", help="TOML file with all categories of the dataset.", metavar="FILE", show_default=False
        ),
    ] = None,
    within: Annotated[
        list[str] | None,
        typer.Option(
            "--within", help="A nested axis and its parent: county:state.", metavar="CHILD:PARENT", show_default=False
        ),
    ] = None,
) -> None:
    """Declare a dataset and its budget."""
    from keepsum.ledger.ledger import Ledger

    name = _named(dataset)
    amount = _budget(budget, budget_delta, budget_rho, per_person)
    cells = _domain(domain, within)
    existed = ledger.exists()
    if existed:
        Ledger(ledger).add_dataset(name, amount, cells)
    else:
        Ledger(ledger, amount, dataset=name, domain=cells)
    done(f"Dataset {name!r} is in the ledger {shown(ledger)!r}.")
    typer.echo(f"Ledger   {shown(ledger)}{'' if existed else ', created'}")
    typer.echo(f"Dataset  {name}")
    typer.echo(f"Budget   {amount}")


def budget(
    ledger: LedgerFile,
    dataset: DatasetName = None,
    budget: Epsilon = None,
    budget_delta: Delta = None,
    budget_rho: Rho = None,
    per_person: PerPerson = False,
) -> None:
    """Change the budget of a dataset."""
    from keepsum.ledger.ledger import Ledger

    amount = _budget(budget, budget_delta, budget_rho, per_person)
    opened = Ledger(ledger)
    name = opened.dataset(dataset).name
    opened.set_budget(name, amount)
    done(f"The budget of {name!r} is changed.")
    typer.echo(f"Budget   {amount}")
    typer.echo(f"Spent    {opened.standing(name)}")


def show(
    ledger: LedgerFile,
    dataset: DatasetName = None,
    all_releases: Annotated[bool, typer.Option("--all", help="Show every release, not only the last ones.")] = False,
    json: AsJson = False,
) -> None:
    """Show budgets and what was spent."""
    from keepsum.ledger.ledger import Ledger
    from keepsum.ledger.showing import dataset_facts, dataset_topics

    opened = Ledger(ledger)
    names = list(opened.datasets) if dataset is None else [opened.dataset(dataset).name]
    number, head = opened.head
    if json:
        datasets = [dataset_facts(opened.dataset(name)) for name in names]
        show_json({"ledger": shown(ledger), "entries": number, "head": head, "datasets": datasets})
        return
    sections = [("Ledger", [shown(ledger), f"{number:,} entries; the hash of the last is {head}"])]
    for name in names:
        sections += dataset_topics(opened.dataset(name), all_releases)
    show_sections(sections_in_shell_terms(sections))


def check(
    ledger: LedgerFile,
    against: Annotated[
        list[Path] | None,
        typer.Option(
            "--against",
            help="A certificate, the folder of a release, or a released table.",
            metavar="CERTIFICATE",
            show_default=False,
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Check a ledger."""
    from keepsum.ledger.checking import checked
    from keepsum.ledger.store import Store
    from keepsum.releasing.saved import read_certificate

    certificates = [read_certificate(path) for path in against or []]
    if not ledger.is_file():
        Store(ledger).read()  # says what is wrong with the name
    result = checked(Store(ledger), certificates)
    if json:
        facts: dict[str, Any] = {"ok": result.ok, "entries": result.entries, "head": result.head}
        show_json({**facts, "certificates": result.compared, "problems": list(result.problems)})
    elif result.ok:
        typer.echo(f"ok       {result.entries:,} entries, none changed, removed or inserted")
        if certificates:
            typer.echo(f"ok       {result.compared:,} certificate{'s' * (result.compared != 1)} agree with it")
        typer.echo(f"Head     {result.head}")
    if not result.ok:
        raise FailedError(" ".join(result.problems))


def export(
    ledger: LedgerFile,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A file instead of standard output.", metavar="FILE", show_default=False),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Export all entries."""
    import msgspec

    from keepsum.ledger.store import Store
    from keepsum.sources.atomic import check_new, write_file

    if output is not None:
        check_new(output, force)
        if output.resolve() == ledger.resolve():
            raise InputError("Output must not be the ledger itself. Choose another name.")
    lines = b"".join(msgspec.json.encode(link) + b"\n" for link in Store(ledger).read())
    if output is None:
        sys.stdout.write(lines.decode())
        return
    write_file(output, lines, force)
    typer.echo(f"Exported  {shown(output)}")


def import_(
    ledger: LedgerFile,
    certificates: Annotated[
        list[Path],
        typer.Argument(
            help="Certificates, folders of releases, or released tables.", metavar="CERTIFICATE", show_default=False
        ),
    ],
    dataset: DatasetName = None,
) -> None:
    """Import releases that were made before."""
    from keepsum.ledger.ledger import Ledger
    from keepsum.releasing.saved import read_certificate, read_invariants

    opened = Ledger(ledger)
    name = opened.dataset(dataset).name
    releases = [(read_certificate(path), read_invariants(path)) for path in certificates]
    for path, (certificate, invariants) in zip(certificates, releases, strict=True):
        opened.import_release(certificate, name, invariants)
        done(f"The release {shown(path)!r} is charged.")
        typer.echo(f"Imported  {shown(path)}")
    typer.echo(f"Spent     {opened.standing(name)}")


def _help(context: typer.Context) -> None:
    """Show the help if no command is named."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _named(dataset: str | None) -> str:
    if dataset is None:
        raise InputError("Option --dataset must name the dataset, such as --dataset pop2010.")
    return dataset


def _budget(epsilon: str | None, delta: str | None, rho: str | None, per_person: bool) -> Budget:
    from keepsum.ledger.budget import Budget

    if epsilon is None and rho is None:
        raise InputError("Option --budget must be given, such as --budget 1.0, or --budget-rho.")
    return Budget(epsilon, delta, rho, per_person)


def _domain(file: str | None, within: list[str] | None) -> Domain | None:
    from keepsum.cli.categories import parse_nesting
    from keepsum.sources.declarations import read_domain
    from keepsum.tables.domain import Domain

    nesting = parse_nesting(within)
    if file is None:
        if nesting:
            raise InputError("Option --within must be given with --domain.")
        return None
    return Domain(read_domain(file), nesting)
