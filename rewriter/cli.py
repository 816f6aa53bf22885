"""
The command `peephole-rewrite`: files in, files out, and one line where that is refused.

Exit codes: 0 done, also when there was nothing to do; 2 refused, and nothing was written; 130 interrupted.
"""

import argparse
import gc
import os
import stat
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from rewriter.driver import CONVENTIONS, Options, OptionsError, Result, rewrite
from rewriter.matcher import COSTS
from rewriter.report import explanation, report_json, table
from rewriter.support import MARCHES
from ruledb.machine.elf import ElfError, load
from ruledb.machine.places import last_rules
from ruledb.machine.rule import Rule
from ruledb.machine.rulefile import FORMAT, RuleFileError, read_rule_file

__all__ = ["main"]

_PROGRAM = "peephole-rewrite"
_SHIPPED = Path(__file__).with_name("default.rules")


class _RefusedError(Exception):
    """The command line or a file is refused; the message is the line to print."""


class _Parser(argparse.ArgumentParser):
    """Bad usage is one line, as every other refusal."""

    def error(self, message: str) -> NoReturn:
        raise _RefusedError(f"{message}; see {_PROGRAM} --help")


@dataclass(frozen=True, slots=True)
class _File:
    """What is to be written, and with which mode bits and owner."""

    path: Path
    data: bytes
    mode: int
    owner: tuple[int, int] | None = None


def main() -> None:
    """Run the command and exit."""
    # File names may hold characters that a terminal does not know.
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # the standard streams are text files
    # A run is short, and what it builds lives until its end: collecting takes a quarter of the time and finds nothing.
    gc.disable()
    sys.exit(_exit_code(sys.argv[1:]))


def _exit_code(arguments: Sequence[str]) -> int:
    try:
        _run(arguments)
        sys.stdout.flush()
    except (_RefusedError, ElfError, RuleFileError, OptionsError) as problem:
        return _refuse(str(problem))
    except BrokenPipeError:
        # The reader of our output has gone; leave nothing for the interpreter to flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as problem:
        return _refuse(f"{problem.filename or 'standard output'}: {problem.strerror}; expected a file or directory that can be used")
    except KeyboardInterrupt:
        return 130
    return 0


def _refuse(message: str) -> int:
    """Print *message* as one line, whatever names it quotes."""
    print(f"{_PROGRAM}: {message}".replace("\n", "\\n"), file=sys.stderr)
    return 2


def _parser() -> _Parser:
    parser = _Parser(prog=_PROGRAM, description="Apply proved peephole rules to a linked x86-64 ELF program.", allow_abbrev=False)
    parser.add_argument("input", metavar="INPUT", nargs="?", help="a program or shared library")
    parser.add_argument("-o", "--output", metavar="OUTPUT", help="where to write (default: INPUT.opt)")
    parser.add_argument("--in-place", action="store_true", help="replace INPUT itself; of a link, the file that it leads to")
    parser.add_argument("--rules", metavar="FILE", help="the rule file (default: $RULEDB_RULES, else that of the last training)")
    parser.add_argument("--cost", choices=tuple(COSTS), default="size", help="what counts as better (default: size)")
    parser.add_argument("--march", choices=MARCHES, default=MARCHES[0], help="instructions that replacements may use (default: x86-64)")
    parser.add_argument("--abi", choices=CONVENTIONS, default="auto", help="the calling convention to rely on (default: auto)")
    parser.add_argument("--skip", metavar="NAME_OR_RANGE", action="append", default=[], help="leave a function, or 0x1000-0x2000, as it is")
    parser.add_argument("--verify", action="store_true", help="prove each site again before anything is written")
    parser.add_argument("--dry-run", action="store_true", help="write no output")
    parser.add_argument("--report", metavar="FILE.json", help="write a report")
    parser.add_argument("--explain", action="store_true", help="print each rewrite, before and after")
    parser.add_argument("--version", action="store_true", help="print the version, the rule format and the rules' semantics, and exit")
    parser.add_argument("-q", "--quiet", action="store_true", help="print no summary")
    parser.add_argument("-v", "--verbose", action="store_true", help="print how long each stage took")
    return parser


def _run(arguments: Sequence[str]) -> None:
    given = _parser().parse_args(arguments)
    if given.version:
        print(_version(given.rules))
        return
    if given.input is None:
        raise _RefusedError(f"no INPUT given; expected a program or shared library; see {_PROGRAM} --help")
    if given.in_place and given.output is not None:
        raise _RefusedError("--in-place and --output exclude each other; give one of them")
    source = Path(given.input)
    image = load(source)
    output = None if given.dry_run else _output(source, given.output, in_place=given.in_place)
    report = Path(given.report) if given.report else None
    _require_apart(source, output, report, in_place=given.in_place)
    rules = read_rule_file(_rules_path(given.rules)).rules
    options = Options(given.cost, given.march, given.abi, tuple(given.skip))
    result = rewrite(image.data, rules, options, image.name)
    verified = None
    if given.verify:
        result, verified = _verified(image.data, rules, options, result, image.name)
    _write(_files(source, output, report, result, verified))
    _tell(result, output, verified, explain=given.explain, quiet=given.quiet, verbose=given.verbose)


def _verified(data: bytes, rules: Sequence[Rule], options: Options, result: Result, name: str) -> tuple[Result, Mapping[str, Any]]:
    """*result*, proved, and the counts; what stays undecided is left as it was."""
    from rewriter.verification import VerificationError, verify  # noqa: PLC0415  # most runs start no other process

    try:
        while (verified := verify(data, result, name))["undecided"]:
            options = replace(options, skip=(*options.skip, *verified["undecided"]))
            result = rewrite(data, rules, options, name)
    except VerificationError as problem:
        raise _RefusedError(str(problem)) from None
    return result, verified


def _version(rules: str | None) -> str:
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415  # slow, and only needed here

    number = "unknown"
    with suppress(PackageNotFoundError):
        number = version("ruledb")
    try:
        path = _rules_path(rules)
        origin = f"semantics {read_rule_file(path).semantics} ({path})"
    except (_RefusedError, RuleFileError):
        if rules is not None:
            raise
        origin = "no rule file"
    return f"{_PROGRAM} {number}, rule format {FORMAT}, {origin}"


def _rules_path(given: str | None) -> Path:
    if name := given or os.environ.get("RULEDB_RULES"):
        return Path(name)
    found = last_rules() or (_SHIPPED if _SHIPPED.is_file() else None)
    if found is None:
        raise _RefusedError("no rule file: no training has exported one; run 'ruledb train', set RULEDB_RULES, or name one with --rules")
    return found


def _output(source: Path, given: str | None, *, in_place: bool) -> Path:
    if in_place:
        return source.resolve()
    return Path(given) if given is not None else source.with_name(source.name + ".opt")


def _require_apart(source: Path, output: Path | None, report: Path | None, *, in_place: bool) -> None:
    """Refuse outputs that would overwrite what they should not."""
    for path in (output, report):
        if path is None or not path.exists():
            continue
        if not path.is_file():
            raise _RefusedError(f"{path}: exists and is no regular file; expected a file to replace, or a new name")
        if path.samefile(source) and not (in_place and path is output):
            raise _RefusedError(f"{path}: is the input itself; name another file, or ask for --in-place")
    if report is not None and output is not None and report.absolute() == output.absolute():
        raise _RefusedError(f"{report}: is both the output and the report; name another file for one of them")


def _files(source: Path, output: Path | None, report: Path | None, result: Result, verified: Mapping[str, Any] | None) -> list[_File]:
    files: list[_File] = []
    if report is not None:
        text = report_json(result, str(source), str(output) if output is not None else None, verified)
        mask = os.umask(0)
        os.umask(mask)
        files.append(_File(report, text.encode(), 0o666 & ~mask))
    if output is not None:
        status = source.stat()
        files.append(_File(output, result.data, stat.S_IMODE(status.st_mode), (status.st_uid, status.st_gid)))
    return files


def _write(files: Sequence[_File]) -> None:
    """Write all of *files* or none: each to a temporary file beside it, then all renamed."""
    staged: list[tuple[str, Path]] = []
    path = Path()
    try:
        for file in files:
            path = file.path
            descriptor, name = tempfile.mkstemp(prefix=f".{_PROGRAM}.", dir=path.parent)
            staged.append((name, path))
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(file.data)
                os.fchmod(descriptor, _mode(descriptor, file))
        while staged:
            name, path = staged[-1]
            os.replace(name, path)  # noqa: PTH105  # strings all the way: no pathlib on this path
            staged.pop()
    except OSError as problem:
        raise _RefusedError(f"{path}: cannot be written: {problem.strerror}; name a writable place with -o") from None
    finally:
        for name, _ in staged:
            with suppress(OSError):
                os.unlink(name)  # noqa: PTH108  # as above


def _mode(descriptor: int, file: _File) -> int:
    """The mode bits for *file*: those of the input, but set-id bits only for the owner whom they were meant for."""
    if file.owner is None:
        return file.mode
    with suppress(OSError):
        os.fchown(descriptor, *file.owner)
    status = os.fstat(descriptor)
    has_same_owner = (status.st_uid, status.st_gid) == file.owner
    return file.mode if has_same_owner else file.mode & ~(stat.S_ISUID | stat.S_ISGID)


def _tell(result: Result, output: Path | None, verified: Mapping[str, Any] | None, *, explain: bool, quiet: bool, verbose: bool) -> None:
    if explain:
        for line in explanation(result):
            print(line)
    if not quiet:
        print(table(result, str(output) if output is not None else "none (dry run)", verified))
    if verbose:
        for stage, seconds in result.seconds.items():
            print(f"{stage:<11}{seconds:.3f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
