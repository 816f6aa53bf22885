"""
Which rules fit a window, and what they would put there.

All that does not depend on the place (does the rule's pattern match, is its replacement encodable, shorter, read the same
by both decoders?) is found out once for each sequence of encodings. What is left for each place is one AND: is everything
dead that the rule changes?
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import or_

from rewriter.option import DISTANCE_BYTES, LIVE_FLAGS, LIVE_REGISTER, UNFRAMED, Candidate, Option, Refusal, placed
from rewriter.outline import Part, Shape, outline_of, part_of, shape_of
from rewriter.support import CONDITIONS, MARCHES, is_supported, relative_operands
from ruledb.cost import time_of
from ruledb.machine.canonical import Canonical, bind, canonicalise
from ruledb.machine.codec import CodecError, Decoded, Flow, agrees, decode, encode, encoding_of, normalise
from ruledb.machine.constant import signed, symbols_in
from ruledb.machine.instruction import Instruction
from ruledb.machine.policy import read_conditions
from ruledb.machine.registers import ALL_FLAGS, ALL_REGISTERS, N_LANES, RBP, RBX, RSP, VIRTUAL, Register, families_of, family_mask
from ruledb.machine.rule import Rule
from ruledb.machine.window import Window, is_barrier

__all__ = ["COSTS", "RuleIndex", "hardware_mask"]


def _size(instructions: Sequence[Instruction], n_bytes: int) -> tuple[int, ...]:
    """Instructions first: nothing moves here, so what an instruction gives up is one to run, and a byte alone is but filler."""
    return len(instructions), n_bytes


COSTS: Mapping[str, Callable[[Sequence[Instruction], int], tuple[int, ...]]] = {"size": _size, "time": time_of}
"""Cost models: (instructions, their bytes) → a tuple, smaller is better."""


class RuleIndex:
    """
    The applicable ones of *rules*, by the canonical form of their patterns.

    Attributes:
        cost: The cost model, one of `COSTS`.
        is_additive: Whether what is saved in a window is saved in its block.
        longest: Instructions of the longest pattern.
        patterns: The patterns of the rules, each as the parts of its outline; shapes are numbered from 1.
        n_unsupported: Rules with conditions that are not known here.

    """

    def __init__(self, rules: Iterable[Rule], cost: str = "size", march: str = "x86-64") -> None:
        self.cost = COSTS[cost]
        self.is_additive = self.cost is _size
        levels = MARCHES[: MARCHES.index(march) + 1]
        given = list(rules)
        supported = [rule for rule in given if is_supported(rule)]
        self.n_unsupported = len(given) - len(supported)
        self._by_pattern: dict[tuple[Instruction, ...], list[Rule]] = {}
        for rule in supported:
            if rule.march in levels:
                self._by_pattern.setdefault(rule.pattern, []).append(rule)
        shapes = dict.fromkeys(shape_of(instruction) for pattern in self._by_pattern for instruction in pattern)
        self._shapes: dict[Shape, int] = {shape: number for number, shape in enumerate(shapes, 1)}
        self.patterns = [[part for i in pattern if (part := part_of(i, self._shapes))] for pattern in self._by_pattern]
        self._outlines = set(map(outline_of, self.patterns))
        self._mnemonics = {instruction.mnemonic for pattern in self._by_pattern for instruction in pattern}
        self.longest = max(map(len, self._by_pattern), default=0)
        self._usable: dict[bytes, bool] = {}
        self._parts: dict[bytes, Part | None] = {}
        self._options: dict[tuple[bytes, ...], tuple[Option | Refusal, ...]] = {}

    def usable(self, decoded: Decoded) -> bool:
        """Whether an instruction like *decoded* is part of some pattern."""
        if decoded.target is not None and decoded.flow is not Flow.CONDITIONAL:
            return False
        found = self._usable.get(decoded.code)
        if found is None:
            found = self._usable[decoded.code] = decoded.instruction.mnemonic in self._mnemonics
        return found

    def part(self, decoded: Decoded) -> Part | None:
        """What an instruction like *decoded* is in outlines; None where no pattern has one of its shape."""
        if decoded.code not in self._parts:
            self._parts[decoded.code] = part_of(decoded.instruction, self._shapes)
        return self._parts[decoded.code]

    def fits(self, decoded: Decoded) -> bool:
        """Whether a pattern has an instruction of the shape of *decoded*."""
        return self.usable(decoded) and self.part(decoded) is not None

    def match(self, window: Window, *, is_framed: bool = False) -> Candidate | Refusal | None:
        """
        The best option for *window*; the reason of the best of those refused, if all are; None where no rule matches.

        *is_framed*: rbp holds an address of the stack before the window (`ruledb.machine.frame`).
        """
        found = self._select(self.options(window.decoded), window.live_out, is_framed=is_framed)
        return placed(found, window) if isinstance(found, Option) else found

    @classmethod
    def _select(cls, options: Sequence[Option | Refusal], live_out: int, *, is_framed: bool) -> Option | Refusal | None:
        refusal: Refusal | None = None
        for option in options:
            if isinstance(option, Refusal):
                return refusal or option  # options come before refusals
            problem = UNFRAMED if option.wants_frame and not is_framed else cls._live(option.dead & live_out)
            if problem is None:
                return option
            refusal = refusal or Refusal(problem, option.digest)
        return refusal

    @staticmethod
    def _live(live: int) -> str | None:
        if live == 0:
            return None
        return LIVE_REGISTER if live & ALL_REGISTERS else LIVE_FLAGS

    def options(self, decoded: Sequence[Decoded]) -> tuple[Option | Refusal, ...]:
        """What the rules say to these encodings, wherever they stand: options first, best saving first, of equals the lowest digest."""
        codes = tuple(map(_opcode, decoded))
        found = self._options.get(codes)
        if found is None:
            found = self._options[codes] = tuple(sorted(self._compute(decoded), key=_preference))
        return found

    def _compute(self, decoded: Sequence[Decoded]) -> Iterator[Option | Refusal]:
        parts = [part for d in decoded if (part := self.part(d)) is not None]
        if len(parts) < len(decoded) or outline_of(parts) not in self._outlines:
            return
        instructions = tuple(d.instruction for d in decoded)
        tried: set[tuple[Instruction, ...]] = set()
        for literal in (False, True):
            canonical = canonicalise(instructions, literal=literal)
            if canonical is None or canonical.instructions in tried:
                continue
            tried.add(canonical.instructions)
            for rule in self._by_pattern.get(canonical.instructions, ()):
                yield self._option(rule, canonical, decoded, instructions)

    def _option(self, rule: Rule, canonical: Canonical, decoded: Sequence[Decoded], before: tuple[Instruction, ...]) -> Option | Refusal:
        families = canonical.families
        constants = [c for c in canonical.constants if isinstance(c, int)]  # all are: what was decoded has no symbols
        if any(signed(value, bits) != value for value, bits in zip(constants, rule.constant_bits, strict=True)):
            return Refusal("constant", rule.digest)
        if not _has_high_bytes(rule.replacement, families):
            return Refusal("does not fit", rule.digest)
        for address in relative_operands(rule.pattern):  # the place tells; until then, any
            constants[min(symbols_in(address.displacement))] = 0
        try:
            after = bind(rule.replacement, families, constants, canonical.target)
        except ValueError:
            return Refusal("constant", rule.digest)  # an operation is undefined for this value
        body, closing = (after[:-1], _closing(after[-1], decoded[-1])) if canonical.target is not None else (after, b"")
        try:
            code = b"".join(map(encode, body))
            intended = tuple(map(normalise, body))
        except CodecError:
            return Refusal("does not fit", rule.digest)
        if closing is None:
            return Refusal("jump", rule.digest)
        n_bytes = sum(d.length for d in decoded)
        n_new = len(code) + (decoded[-1].length if closing else 0)
        old, new = self.cost(before, n_bytes), self.cost(after, n_new)
        if not new < old:
            return Refusal("not cheaper", rule.digest)
        if self.cost is time_of and old[:-1] == new[:-1]:
            # Fewer bytes of the same work leave one more NOP to run.
            return Refusal("only bytes", rule.digest)
        whole = code + closing + bytes(DISTANCE_BYTES.get(len(closing), 0))
        written = tuple(decode(whole))
        named = [d.instruction.mnemonic for d in written[len(body) :]] == [i.mnemonic for i in after[len(body) :]]
        if tuple(d.instruction for d in written[: len(body)]) != intended or not named or not agrees(whole):
            return Refusal("decoder", rule.digest)
        if any(map(is_barrier, written[: len(body)])):
            return Refusal("barrier", rule.digest)
        if not set(families_of(_writes(written))) <= set(families_of(_writes(decoded))):
            return Refusal("scratch", rule.digest)
        if _may_frame(decoded):
            return Refusal("cfi", rule.digest)
        bases = {families[b - VIRTUAL] if b >= VIRTUAL else b for b in read_conditions(rule.policy, rule.assumes).bases}
        if not bases <= {RBP}:
            return Refusal(UNFRAMED, rule.digest)
        return Option(
            rule.digest,
            before,
            (*intended, *after[len(body) :]),
            code,
            hardware_mask(rule.touched & ~rule.preserves, families),
            tuple(a - b for a, b in zip(old, new, strict=True)),
            n_bytes - n_new,
            time_of(before, n_bytes)[1] - time_of(after, n_new)[1],
            wants_frame=bool(bases),
            closing=closing,
            relative=rule if relative_operands(rule.replacement) else None,
            policy=rule.policy,
            march=rule.march,
        )


def hardware_mask(mask: int, families: Sequence[int]) -> int:
    """*mask* over canonical families, moved to the hardware families that they stand for."""
    moved = mask & (ALL_REGISTERS | ALL_FLAGS)
    for k, family in enumerate(families):
        moved |= (mask >> N_LANES * (VIRTUAL + k) & 0b1111) << N_LANES * family
    return moved


def _preference(option: Option | Refusal) -> tuple[object, ...]:
    match option:
        case Refusal(reason, digest):
            return (1, reason, digest)
        case Option(digest, saved=saved):
            return (0, tuple(-n for n in saved), digest)


def _opcode(decoded: Decoded) -> bytes:
    """The bytes of an instruction without its distance to another address, which says nothing of what it is."""
    if decoded.target is None and decoded.reference is None:
        return decoded.code
    field, size = encoding_of(decoded.code).distance
    return decoded.code[:field] + bytes(size) + decoded.code[field + size :]


def _closing(jump: Instruction, old: Decoded) -> bytes | None:
    """The opcode of *jump* with a distance as wide as that of *old*; None where *old* is written in an unusual way."""
    number = CONDITIONS.index(jump.mnemonic.removeprefix("j"))
    match old.length, old.code[0]:
        case 2, first if first & 0xF0 == 0x70:
            return bytes([0x70 | number])
        case 6, 0x0F:
            return bytes([0x0F, 0x80 | number])
    return None


def _writes(decoded: Iterable[Decoded]) -> int:
    return reduce(or_, (d.writes & ALL_REGISTERS for d in decoded), 0)


_FRAME_BASES = family_mask(RBP) | family_mask(10)
"""What compilers let an unwinder find the frame from, besides rsp: rbp, and r10 where the stack is aligned anew."""


def _may_frame(decoded: Sequence[Decoded]) -> bool:
    """Whether the window may set up what an unwinder finds the frame from; to data flow, that can look dead."""
    stack, writes = family_mask(RSP), _writes(decoded)
    return bool(writes & stack or (writes & _FRAME_BASES and any(d.reads & stack for d in decoded)))


def _has_high_bytes(instructions: Sequence[Instruction], families: Sequence[int]) -> bool:
    """Whether each high byte that canonical *instructions* name exists in the families that they stand for."""
    named = (o for i in instructions for o in i.operands if isinstance(o, Register) and o.high and o.is_virtual)
    return all(families[r.family - VIRTUAL] <= RBX for r in named)
