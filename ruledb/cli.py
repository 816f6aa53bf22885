"""The command `ruledb`: options, printing, exit codes. What is done is elsewhere."""

import json
import re
import sys
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ruledb import commands
from ruledb.machine.elf import ElfError
from ruledb.machine.march import LEVELS
from ruledb.machine.policy import POLICIES
from ruledb.machine.rulefile import RuleFileError
from ruledb.request import RequestError
from ruledb.sites import SitesError
from ruledb.store.database import DatabaseError, DatabaseFailure

__all__ = ["main"]

app = typer.Typer(
    name="ruledb",
    help="Learn, prove and inspect peephole rules for x86-64 binaries.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
bench_app = typer.Typer(help="Measure and print, with machine and versions.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(bench_app, name="bench")

REFUSED, INTERRUPTED = 2, 130

_UsageError: type[Any] = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")
"""What bad usage raises; typer carries its own click, or uses an installed one."""

Database = Annotated[str | None, typer.Option("--db", metavar="URL", help="Database; default $RULEDB_URL, else a file of yours.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")]
LiveOut = Annotated[
    str | None, typer.Option("--live-out", metavar="LIST", help="Live registers at their width; default all written, whole.")
]
LiveFlags = Annotated[str | None, typer.Option("--live-flags", metavar="LIST", help="Live flags, or all; default none.")]
LiveMemory = Annotated[bool, typer.Option("--live-memory/--no-live-memory", help="Whether stored bytes must agree.")]
Scratch = Annotated[str | None, typer.Option("--scratch", metavar="LIST", help="Dead registers that may be overwritten.")]
Cost = Annotated[str, typer.Option("--cost", metavar="size|time", help="What cheaper means.")]
March = Annotated[str, typer.Option("--march", metavar="LEVEL", help="x86-64, x86-64-v2 or x86-64-v3.")]
Jobs = Annotated[int | None, typer.Option("--jobs", min=1, metavar="N", help="Processes; default all cores.")]


def _one_of(option: str, value: str, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise RequestError(f"{option} {value}: expected {' or '.join(allowed)}")
    return value


def _march(value: str) -> str:
    return _one_of("--march", value, tuple(LEVELS))


def _text(asm: str) -> str:
    return sys.stdin.read() if asm == "-" else asm


def _print(data: dict[str, Any] | list[Any], *, as_json: bool, human: Callable[[], None]) -> None:
    if as_json:
        print(json.dumps(data))
    else:
        human()


def _duration(text: str | None) -> float | None:
    """Seconds of ``90s``, ``15m``, ``8h``."""
    if text is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text)
    if found is None:
        raise RequestError(f"--budget {text}: expected a duration such as 90s, 15m or 8h")
    return float(found[1]) * {"s": 1, "": 1, "m": 60, "h": 3600}[found[2]]


@app.command()
def train(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Binaries, or folders of them.")],
    db: Database = None,
    cost: Annotated[str, typer.Option("--cost", metavar="size|time|both")] = "both",
    window: Annotated[int, typer.Option(min=1, max=6, help="Longest pattern.")] = 6,
    length: Annotated[int, typer.Option(min=1, max=3, help="Longest replacement.")] = 3,
    registers: Annotated[int, typer.Option(min=1, max=4, help="Most registers of a window.")] = 4,
    march: March = "x86-64",
    jobs: Jobs = None,
    budget: Annotated[str | None, typer.Option(metavar="DURATION", help="Stop cleanly after 90s, 15m, 8h; run again to go on.")] = None,
    rules_out: Annotated[Path | None, typer.Option("--rules-out", metavar="FILE", help="Where to write the rule file.")] = None,
    as_json: Json = False,
) -> None:
    """Harvest, search, prove, store; then export the rule file."""
    _march(march)
    models = ("size", "time") if _one_of("--cost", cost, ("size", "time", "both")) == "both" else (cost,)
    shape = {"models": models, "window": window, "length": length, "registers": registers}
    report, exported = commands.train(db, paths, shape, jobs, _duration(budget), rules_out, quiet=False)

    def human() -> None:
        table = Table(title=f"Run {report['run']}", show_header=False)
        for name in (
            "files",
            "instructions",
            "windows",
            "targets",
            "candidates",
            "matches",
            "proved",
            "refuted",
            "unknown",
            "rules",
            "new_rules",
        ):
            table.add_row(name.replace("_", " "), f"{report[name]:,}")
        table.add_row("seconds", ", ".join(f"{k} {v:.0f}" for k, v in report["seconds"].items()))
        Console().print(table)
        for reason, count in sorted(report["skipped"].items()):
            print(f"skipped {count:,}: {reason}")
        for query in report["unknown_queries"]:
            print(f"undecided: {query}")
        if not report["complete"]:
            print("the budget is used up; run the same command again to go on")
        print(f"rule file: {exported}")

    _print(report, as_json=as_json, human=human)


@app.command()
def optimize(
    asm: Annotated[str, typer.Argument(metavar="ASM", help="Intel syntax, ; between instructions; - reads standard input.")],
    db: Database = None,
    live_out: LiveOut = None,
    live_flags: LiveFlags = None,
    live_memory: LiveMemory = True,
    scratch: Scratch = None,
    cost: Cost = "size",
    march: March = "x86-64",
    length: Annotated[int, typer.Option(min=1, max=3, help="Longest replacement.")] = 3,
    timeout: Annotated[float, typer.Option(metavar="S", help="Seconds to search.")] = 60.0,
    jobs: Jobs = None,
    as_json: Json = False,
) -> None:
    """Find the cheapest equivalent of a window: from the database, else by searching now."""
    del live_memory  # windows with memory are not searched as yet
    _march(march)
    _one_of("--cost", cost, ("size", "time"))
    if not 0 <= timeout < 1e9:
        raise RequestError(f"--timeout {timeout}: expected seconds, 0 or more")
    answer = commands.optimize(db, _text(asm), live_out, live_flags, scratch, cost, length, timeout, jobs, march)

    def human() -> None:
        print(answer["status"] + (f": {answer['reason']}" if answer["reason"] else ""))
        for line in answer["replacement"] or []:
            print(f"  {line}")
        if answer["after"]:
            shown = ("instructions", "bytes", "cycles")
            print(", ".join(f"{name} {answer['before'][name]} -> {answer['after'][name]}" for name in shown))

    _print(answer, as_json=as_json, human=human)
    if answer["status"] not in ("improved", "optimal"):
        raise typer.Exit(3)


@app.command()
def check(
    asm1: Annotated[str, typer.Argument(metavar="ASM1")],
    asm2: Annotated[str, typer.Argument(metavar="ASM2")],
    live_out: LiveOut = None,
    live_flags: LiveFlags = None,
    live_memory: LiveMemory = True,
    scratch: Scratch = None,
    policy: Annotated[str, typer.Option("--policy", metavar="|".join(POLICIES), help="What may be assumed of memory.")] = "strict",
    assume: Annotated[
        list[str] | None, typer.Option("--assume", metavar="FACT", help="stack(rbp), private(rsp-8), dead(rsp-8); may be repeated.")
    ] = None,
    march: March = "x86-64",
    as_json: Json = False,
) -> None:
    """May ASM2 replace ASM1? Proved, or shown to differ by a state that the emulator confirms."""
    options: dict[str, Any] = {"policy": policy, "assume": assume or (), "march": _march(march), "is_memory_live": live_memory}
    answer = commands.check(_text(asm1), asm2, live_out, live_flags, scratch, **options)

    def human() -> None:
        print(answer["verdict"] + (f": {answer['reason']}" if answer["reason"] else ""))
        for name in ("counterexample", "left", "right"):
            if answer[name]:
                shown = {**answer[name]["regs"], **answer[name]["flags"], **{f"[{a}]": v for a, v in answer[name]["memory"].items()}}
                shown |= {"fault": "yes"} if answer[name].get("fault") else {}
                print(f"  {name:<15}" + " ".join(f"{k}={v}" for k, v in shown.items()))

    _print(answer, as_json=as_json, human=human)
    code = {"equivalent": 0, "different": 1}.get(answer["verdict"], 3)
    if code:
        raise typer.Exit(code)


@app.command()
def rules(
    db: Database = None,
    top: Annotated[int, typer.Option("--top", min=1, metavar="N")] = 30,
    sort: Annotated[str, typer.Option("--sort", metavar="saving|uses|bytes|cycles")] = "saving",
    as_json: Json = False,
) -> None:
    """List rules: by saving times uses, by uses, by bytes or by cycles saved."""
    _one_of("--sort", sort, ("saving", "uses", "bytes", "cycles"))
    found = commands.rules(db, top, sort)

    def human() -> None:
        table = Table("digest", "pattern", "replacement", "bytes", "cycles", "uses", title=f"{len(found)} rules")
        for r in found:
            table.add_row(
                r["digest"][:8],
                Text(r["pattern"]),
                Text(r["replacement"] or "(nothing)"),
                str(r["saved_bytes"]),
                str(r["saved_cycles"]),
                f"{r['uses']:,}",
            )
        Console().print(table)

    _print(found, as_json=as_json, human=human)


@app.command()
def show(
    digest: Annotated[str, typer.Argument(metavar="DIGEST", help="A rule's digest, or the start of it.")],
    db: Database = None,
    smt2: Annotated[bool, typer.Option("--smt2", help="Print the rule's query.")] = False,
    as_json: Json = False,
) -> None:
    """Print one rule: text, guards, proofs, provenance, where it was seen."""
    rule = commands.show(db, digest)
    if smt2:
        print(commands.query(db, digest), end="")
        return

    def human() -> None:
        for name, value in rule.items():
            if isinstance(value, list):
                print(f"{name}:" + ("" if value else " none"))
                for item in value:
                    print("  " + (", ".join(map(str, item.values())) if isinstance(item, dict) else str(item)))
            else:
                print(f"{name}: {value}")

    _print(rule, as_json=as_json, human=human)


@app.command()
def verify(
    file: Annotated[Path | None, typer.Argument(metavar="[FILE]", help="A rule file; default the database.")] = None,
    db: Database = None,
    solver: Annotated[str, typer.Option("--solver", metavar="NAME", help="bitwuzla or z3.")] = "bitwuzla",
    sites: Annotated[Path | None, typer.Option("--sites", metavar="REPORT", help="Prove the sites that a rewriter's report lists.")] = None,
    jobs: Jobs = None,
    as_json: Json = False,
) -> None:
    """Prove every rule of the database, or of a rule file, again; or the sites of a rewritten program."""
    if sites is not None and (file is not None or db is not None):
        raise RequestError("--sites: takes no rule file and no database; the report names the files that it is about")
    answer = commands.verify(db, file, solver, jobs) if sites is None else commands.verify_sites(sites, solver, jobs)

    def human() -> None:
        counts = ", ".join(f"{answer[name]:,} {name}" for name in ("proved", "refuted", "unknown"))
        if sites is None:
            print(f"{answer['rules']:,} rules: {counts}")
            print(f"{answer['stale']:,} stale, {answer['seconds']:.1f} s with {solver}")
        else:
            print(f"{answer['sites']:,} sites, {answer['claims']:,} claims, of which {answer['known']:,} are known to hold")
            print(f"{counts}, {answer['seconds']:.1f} s with {solver}")
        for failure in answer["failures"]:
            print(f"  {failure}")

    _print(answer, as_json=as_json, human=human)
    if answer["refuted"]:
        raise typer.Exit(1)
    if answer["unknown"]:
        raise typer.Exit(3)


@app.command(name="export")
def export_(file: Annotated[Path, typer.Argument(metavar="FILE")], db: Database = None, as_json: Json = False) -> None:
    """Write the rule file."""
    count = commands.export(db, file)
    _print({"rules": count}, as_json=as_json, human=lambda: print(f"{count:,} rules written to {file}"))


@app.command(name="import")
def import_(file: Annotated[Path, typer.Argument(metavar="FILE")], db: Database = None, jobs: Jobs = None, as_json: Json = False) -> None:
    """Read a rule file: each rule is proved before it is stored."""
    answer = commands.import_(db, file, jobs)
    _print(answer, as_json=as_json, human=lambda: print(f"{answer['rules']:,} rules stored, {answer['rejected']:,} rejected"))
    if answer["rejected"]:
        raise typer.Exit(1)


MISSING_SHOWN = 10


@app.command()
def coverage(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="ELF programs, shared libraries or object files.")],
    as_json: Json = False,
) -> None:
    """Which instructions have semantics, of all in functions but a fixed list, and which mnemonics are missing most."""
    answer = commands.coverage(files)

    def human() -> None:
        counted, windows = answer["counted"], answer["windows"]
        summary = Table(title=f"{answer['share']:.2%} of {counted:,} instructions are modelled", show_header=False)
        summary.add_row("instructions in functions", f"{answer['instructions']:,}")
        for reason, count in answer["excluded"].items():
            summary.add_row(Text(f"left out: {reason}"), f"{count:,}")
        summary.add_row("modelled", f"{answer['modelled']:,}")
        summary.add_row("windows of 2, modelled", f"{windows['modelled']:,} of {windows['all']:,}")
        Console().print(summary)
        if answer["missing"]:
            table = Table("mnemonic", "count", "share", "most frequent form", title="Missing most")
            for m in answer["missing"][:MISSING_SHOWN]:
                table.add_row(m["mnemonic"], f"{m['count']:,}", f"{m['count'] / counted:.2%}", Text(m["forms"][0]["form"]))
            Console().print(table)

    _print(answer, as_json=as_json, human=human)


@bench_app.command()
def enumerate(  # noqa: A001  # the command's name
    paths: Annotated[
        list[Path] | None, typer.Argument(metavar="[PATH...]", help="Binaries to take targets from; default corpora/.")
    ] = None,
    registers: Annotated[int, typer.Option(min=1, max=4)] = 4,
    targets: Annotated[int, typer.Option(min=1, help="Harvested targets to put into the table.")] = 100_000,
    jobs: Annotated[int, typer.Option(min=1)] = 1,
    as_json: Json = False,
) -> None:
    """Candidates per second and core at length 3, fingerprint and probe included; 100 planted targets must be found."""
    answer = commands.bench_enumerate(paths or [Path("corpora")], registers, targets, jobs)
    _print(answer, as_json=as_json, human=lambda: _print_figures("bench enumerate", answer))
    if answer["planted_found"] < answer["planted"]:
        raise typer.Exit(1)


@bench_app.command()
def rewrite(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A program or shared library; it stays as it is.")],
    rules: Annotated[Path | None, typer.Option(metavar="FILE", help="The rule file; default: the rewriter's.")] = None,
    as_json: Json = False,
) -> None:
    """Megabytes of code per second of processor time, and the seconds of each stage."""
    answer = commands.bench_rewrite(file, rules)
    _print(answer, as_json=as_json, human=lambda: _print_figures("bench rewrite", answer))


def _print_figures(title: str, figures: dict[str, Any]) -> None:
    table = Table(title=title, show_header=False)
    for name, value in figures.items():
        stages = {f"{name} {stage}": s for stage, s in value.items()} if isinstance(value, dict) else {name: value}
        for row, figure in stages.items():
            table.add_row(row.replace("_", " "), f"{figure:,}" if isinstance(figure, int) else str(figure))
    Console().print(table)


def _refuse(message: str) -> NoReturn:
    print(f"ruledb: {' '.join(message.split())}", file=sys.stderr)
    raise SystemExit(REFUSED)


@contextmanager
def _one_line() -> Iterator[None]:
    """Bad input and bad usage end in one line on standard error."""
    try:
        yield
    except (RequestError, DatabaseError, RuleFileError, ElfError, SitesError, commands.CommandError) as problem:
        _refuse(str(problem))
    except DatabaseFailure as problem:
        _refuse(f"the database failed: {str(problem.orig).strip()}; what was stored stays, run the same command again to go on")
    except BrokenProcessPool:
        _refuse("a worker process died, most likely for want of memory; what was stored stays, run again with fewer --jobs")
    except OSError as problem:
        where = f"{problem.filename}: " if problem.filename else ""
        _refuse(f"{where}{problem.strerror or problem}")
    except _UsageError as problem:
        _refuse(problem.format_message())
    except (typer.Abort, KeyboardInterrupt):
        print("ruledb: interrupted; what was stored stays, run the same command again to go on", file=sys.stderr)
        raise SystemExit(INTERRUPTED) from None


def main() -> None:
    """Run the command line."""
    with _one_line():
        code = app(standalone_mode=False)
        if code == INTERRUPTED:  # typer turns the interrupt into this
            raise KeyboardInterrupt
        raise SystemExit(code if isinstance(code, int) else 0)
