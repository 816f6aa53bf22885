"""
The rewriting of a whole binary: passes over its blocks until nothing is left to do.

Within a pass, each block is rewritten until it settles, under what was live behind it when the pass began. That is enough:
a rewrite keeps what the rest of the program computes from any state, so whatever could not be told from behind a block
before cannot be told after. The next pass finds out anew what is read, which may be less.

Every rewrite lowers the cost of its block, and costs are whole numbers, so this ends; and since the last pass left nothing
to find in the very bytes that are returned, rewriting those again changes nothing.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import NamedTuple

import numpy as np

from rewriter.matcher import COSTS, RuleIndex
from rewriter.option import Candidate, Refusal
from rewriter.patcher import Edit, apply, patch
from rewriter.scan import Found, Scanner
from rewriter.selector import choose
from rewriter.support import MARCHES
from ruledb.machine.blocks import Block, Program, read_program
from ruledb.machine.codec import Flow
from ruledb.machine.elf import ElfError, Image, parse
from ruledb.machine.frame import framed, framed_in
from ruledb.machine.functions import Function
from ruledb.machine.instruction import sequence_text
from ruledb.machine.keep import SSC_MARK, VALGRIND_PREAMBLE, has_marker, kept
from ruledb.machine.likeness import looks_alike
from ruledb.machine.listing import Encodings, Marks
from ruledb.machine.liveness import Liveness, before, live_out
from ruledb.machine.registers import mask_text
from ruledb.machine.rule import Rule
from ruledb.machine.window import is_filler, windows

__all__ = ["CONVENTIONS", "Options", "OptionsError", "Result", "Rewrite", "rewrite"]

CONVENTIONS = ("auto", "sysv", "strict")
_MOST_PASSES = 100
"""A bound for the peace of mind; three or four passes are usual."""


class OptionsError(ValueError):
    """An option asks for something that does not exist; the message names it and what is expected."""


@dataclass(frozen=True, slots=True)
class Options:
    """
    How to rewrite.

    Attributes:
        cost: The cost model: what counts as better.
        march: The instruction-set level that replacements may use.
        abi: The calling convention to rely on; "strict" relies on none.
        skip: Functions by name, and ranges of addresses ``0x1000-0x2000``, that stay as they are.

    """

    cost: str = "size"
    march: str = "x86-64"
    abi: str = "auto"
    skip: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, value, known in (("cost", self.cost, tuple(COSTS)), ("march", self.march, MARCHES), ("abi", self.abi, CONVENTIONS)):
            if value not in known:
                raise OptionsError(f"{name} {value!r}: expected one of {', '.join(known)}")


@dataclass(frozen=True, slots=True)
class Rewrite:
    """
    One application of a rule, to the bytes up to *end*. *live_out* is what was live behind the window; *policy*, *assumes* and
    *march* are the rule's.
    """

    address: int
    end: int
    rule: str
    before: str
    after: str
    live_out: str
    bytes_saved: int
    instructions_removed: int
    cycles_saved: int
    policy: str = "none"
    assumes: tuple[str, ...] = ()
    march: str = "x86-64"


@dataclass(frozen=True)
class Result:
    """
    The rewritten file and what was done.

    Attributes:
        data: The file's bytes; those given, where there was nothing to do.
        text_bytes: Bytes of executable code.
        instructions: Instructions of the functions that could be read.
        functions: Functions seen.
        opaque: Number of functions that were not touched, by reason.
        rewrites: In the order in which they were made.
        refused: Number of places where a rule matched but was not applied in the end, by reason.
        refused_rules: The same by the rule's digest, then by reason; of those that are a rule's own.
        passes: Passes over the binary; the last one left nothing to find.
        seconds: Time by stage.

    """

    data: bytes
    text_bytes: int
    instructions: int
    functions: int
    opaque: Mapping[str, int]
    rewrites: tuple[Rewrite, ...]
    refused: Mapping[str, int]
    refused_rules: Mapping[str, Mapping[str, int]]
    passes: int
    seconds: Mapping[str, float]


_Reason = tuple[str, str]
"""Why a place was refused, and the digest of the rule ("": no rule's own)."""


@dataclass(frozen=True)
class _Survey:
    """What the first reading tells."""

    functions: tuple[Function, ...]
    n_instructions: int
    opaque: Counter[str]


@dataclass
class _Settled:
    """What became of a block, or of all. Where it *is_hidden*, no other block can tell a difference."""

    edits: list[Edit] = field(default_factory=list)
    taken: list[Candidate] = field(default_factory=list)
    refused: Counter[_Reason] = field(default_factory=Counter)
    is_hidden: bool = True


_Known = dict[int, tuple[tuple[int, ...], Counter[_Reason]]]
"""Start of a block that settled without edits → its end and what was live behind it, and its refusals."""


def rewrite(data: bytes, rules: Iterable[Rule], options: Options | None = None, name: str = "image") -> Result:
    """
    The program or library *data*, which messages call *name*, with *rules* applied wherever that is sound and cheaper.

    Raises:
        ElfError: It is not a linked x86-64 ELF file.
        OptionsError: A function to skip does not exist.

    """
    options = options or Options()
    seconds: dict[str, float] = {}
    with _timed(seconds, "rules"):
        index = RuleIndex(rules, options.cost, options.march)
        scanner = Scanner(index)
    image = parse(data, name)
    if image.kind == "relocatable":
        raise ElfError(f"{name}: is an object file; expected a linked program or shared library: link it first")
    survey: _Survey | None = None
    rewrites: list[Rewrite] = []
    refused: Counter[_Reason] = Counter()
    known: _Known = {}
    encodings = Encodings()
    passes = 0
    is_settled = False
    while not is_settled and passes < _MOST_PASSES:
        with _timed(seconds, "read"):
            image = image.patched(data)
            program = read_program(image, encodings, survey.functions if survey is not None else None)
            closed = _closed(program)
        with _timed(seconds, "liveness"):
            live = live_out(program, options.abi)
            # Where no convention holds, a call may leave anything in rbp.
            frame = framed(program) if options.abi != "strict" else np.zeros(len(program.listing), dtype=np.bool_)
        with _timed(seconds, "match"):
            found = scanner.find(program, live, frame, _wanted(program, closed))
        with _timed(seconds, "choose"):
            settled = _pass(program, found, (live, frame), index, _ranges(image, options.skip), known)
        with _timed(seconds, "patch"):
            data = apply(image, settled.edits) if settled.edits else data
        survey = survey or _surveyed(program, closed)
        rewrites += _records(settled)
        refused = settled.refused
        is_settled = settled.is_hidden  # another pass would find what this one has left
        passes += 1
        del program, live, found, settled  # the next reading needs the room
    assert survey is not None
    refused += Counter({("unsupported rule", ""): index.n_unsupported})
    return Result(
        data,
        sum(end - start for start, end in image.executable_ranges),
        survey.n_instructions,
        len(survey.functions),
        dict(sorted(survey.opaque.items())),
        tuple(rewrites),
        _by_reason(refused),
        {digest: _by_reason(part) for digest, part in _by_rule(refused)},
        passes,
        seconds,
    )


def _surveyed(program: Program, closed: Mapping[int, str]) -> _Survey:
    opaque = program.opaque_counts() + Counter(closed.values())
    return _Survey(program.functions, int((program.cuts.stop - program.cuts.first).sum()), opaque)


def _by_reason(refused: Counter[_Reason]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for (reason, _), n in refused.items():
        total[reason] += n
    return dict(sorted(total.items()))


def _by_rule(refused: Counter[_Reason]) -> Iterator[tuple[str, Counter[_Reason]]]:
    """The refusals of each rule, those with most first."""
    rules: dict[str, Counter[_Reason]] = {}
    for key, n in refused.items():
        if key[1]:
            rules.setdefault(key[1], Counter())[key] = n
    yield from sorted(rules.items(), key=lambda item: (-item[1].total(), item[0]))


@contextmanager
def _timed(seconds: dict[str, float], stage: str) -> Iterator[None]:
    start = perf_counter()
    yield
    seconds[stage] = seconds.get(stage, 0.0) + perf_counter() - start


_RANGE = re.compile(r"(0x[0-9a-f]+|\d+)-(0x[0-9a-f]+|\d+)", re.IGNORECASE)


def _ranges(image: Image, skip: Iterable[str]) -> list[tuple[int, int]]:
    """The ranges of addresses that *skip* names."""
    ranges: list[tuple[int, int]] = []
    for word in skip:
        if match := _RANGE.fullmatch(word):
            start, end = int(match[1], 0), int(match[2], 0)
            if start >= end:
                raise OptionsError(f"skip {word!r}: an empty range; expected the start before the end, such as 0x1000-0x2000")
            ranges.append((start, end))
            continue
        named = [(s.address, s.address + s.size) for s in image.symbols if s.name == word and s.is_function and s.address]
        if not named:
            raise OptionsError(f"skip {word!r}: {image.name} has no function of this name; expected one, or a range such as 0x1000-0x2000")
        ranges.extend(named)
    return ranges


def _closed(program: Program) -> dict[int, str]:
    """
    Functions that could be read but are left alone, with the reason: at requests to simulators and at probes of tracers,
    registers are read that no instruction reads.
    """
    listing, cuts = program.listing, program.cuts
    numbers = [number for number, code in enumerate(listing.encodings.codes) if code in (SSC_MARK, VALGRIND_PREAMBLE[0])]
    places = np.flatnonzero(np.isin(listing.encoding, numbers)) if numbers else np.empty(0, dtype=np.int64)
    holders = np.unique(np.searchsorted(cuts.first, places, side="right") - 1)
    marked = (program.block(number) for number in holders.tolist() if number >= 0 and program.is_open[number])
    closed = {block.function: "marker" for block in marked if has_marker(block)}
    probed = (program.function_at(address) for address in program.image.probes)
    return closed | {f.start: "probe" for f in probed if f is not None and f.start not in program.opaque}


def _wanted(program: Program, closed: Mapping[int, str]) -> Marks:
    """Per block, whether it may be touched: where a fault may raise an exception, registers are seen in the middle of windows."""
    left_alone = np.array([f.start in closed for f in program.functions], dtype=np.bool_)
    n_raising = np.append(0, np.cumsum(program.may_raise))
    raises = n_raising[program.cuts.stop] > n_raising[program.cuts.first]
    return program.is_open & ~left_alone[program.cuts.function] & ~raises


class _Around(NamedTuple):
    """What holds around a block: what is live *behind* its last instruction, and *before* it, and whether it is entered with a frame."""

    behind: int
    before: int
    is_framed: bool


def _pass(
    program: Program, found: Found, facts: tuple[Liveness, Marks], index: RuleIndex, skip: Sequence[tuple[int, int]], known: _Known
) -> _Settled:
    """
    One pass over the blocks where something was *found*, by *facts*: liveness and frames. What settled at once in an earlier
    pass, and is as it was then, is *known* to be settled.
    """
    live, frame = facts
    total = _Settled(refused=Counter(found.refused))
    for number in found.blocks:
        block = program.block(number)
        last = int(program.cuts.stop[number]) - 1
        before_last = live.mask(last - 1) if len(block.instructions) > 1 else 0
        around = _Around(live.mask(last), before_last, bool(frame[program.cuts.first[number]]))
        place = (block.end, *around)
        old_place, refused = known.get(block.start, ((), Counter()))
        if old_place == place:
            total.refused += refused
            continue
        settled = _settle(block, around, index, skip)
        if not settled.edits:
            known[block.start] = place, settled.refused
        total.edits += settled.edits
        total.taken += settled.taken
        total.refused += settled.refused
        total.is_hidden = total.is_hidden and settled.is_hidden
    return total


def _settle(block: Block, around: _Around, index: RuleIndex, skip: Sequence[tuple[int, int]]) -> _Settled:
    """Rewrite *block* until no rule lowers its cost."""
    settled, original = _Settled(), block
    cost = _cost(block, index)
    while True:
        candidates, refused = _candidates(block, around, index, skip)
        made = next(
            (
                (new, edits, chosen, lower)
                for chosen in _choices(candidates)
                for new, edits in [patch(block, chosen, settled.edits)]
                if (lower := _cost(new, index)) < cost or index.is_additive
            ),
            None,
        )
        if made is None:
            kept_back = [("keep", "") for i in kept(block) if index.usable(block.instructions[i])]
            settled.refused = Counter([*refused, *kept_back, *(("not cheaper", c.option.digest) for c in candidates)])
            settled.is_hidden = not settled.edits or looks_alike(original, block)
            return settled
        block, edits, chosen, cost = made
        settled.edits += edits
        settled.taken += chosen


def _candidates(block: Block, around: _Around, index: RuleIndex, skip: Sequence[tuple[int, int]]) -> tuple[list[Candidate], list[_Reason]]:
    """The candidates of *block*, and why others are none."""
    candidates: list[Candidate] = []
    refused: list[_Reason] = []
    frame = framed_in(block, around.is_framed)
    for window in windows(block, _live_after(block, around), index.longest, index.fits, index.options):
        match index.match(window, is_framed=frame[window.positions[0]]):
            case Refusal(reason, digest):
                refused.append((reason, digest))
            case Candidate(option=option) if any(window.start < end and start < window.end for start, end in skip):
                refused.append(("skip", option.digest))
            case Candidate() as candidate:
                candidates.append(candidate)
    return candidates, refused


def _live_after(block: Block, around: _Around) -> tuple[int, ...]:
    """What may be read behind each instruction of *block*, which may have changed since *around* was found out."""
    found = [around.behind]
    if len(block.instructions) > 1:
        is_as_it_was = block.last.flow is not Flow.NEXT
        found.append(around.before if is_as_it_was else before(block.last, found[0]))
    for instruction in reversed(block.instructions[1:-1]):
        found.append(before(instruction, found[-1]))
    return tuple(reversed(found))


def _choices(candidates: Sequence[Candidate]) -> Iterator[tuple[Candidate, ...]]:
    """What to try: all that go together, else each alone. What makes a window faster need not do so for its block."""
    together = choose(candidates)
    if together:
        yield together
        yield from ((candidate,) for candidate in together if len(together) > 1)


def _cost(block: Block, index: RuleIndex) -> tuple[int, ...]:
    """What *block* costs, filler not counted; nothing, where that need not be known."""
    if index.is_additive:
        return ()
    work = [d for d in block.instructions if not is_filler(d)]
    return index.cost([d.instruction for d in work], sum(d.length for d in work))


def _records(settled: _Settled) -> list[Rewrite]:
    options = {id(candidate.option): candidate.option for candidate in settled.taken}
    texts = {key: (sequence_text(option.before), sequence_text(option.after)) for key, option in options.items()}
    pairs = zip(settled.taken, settled.edits, strict=True)
    return [_record(candidate, edit, *texts[id(candidate.option)]) for candidate, edit in pairs]


def _record(candidate: Candidate, edit: Edit, before: str, after: str) -> Rewrite:
    option, window = candidate.option, candidate.window
    return Rewrite(
        edit.address,
        edit.end,
        option.digest,
        before,
        after,
        mask_text(window.live_out),
        option.bytes_saved,
        len(option.before) - len(option.after),
        option.cycles_saved,
        option.policy,
        option.assumes,
        option.march,
    )
