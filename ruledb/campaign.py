"""
One campaign of the search: all pending targets with the same number of registers, against all candidates.

Targets are canonical windows; the search works on the hardware families of a universe. `Naming` goes to and fro.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from ruledb.cost import latency_of, size_of
from ruledb.machine.canonical import LITERALS, bind, domains, families_in, fixed_families, rename
from ruledb.machine.codec import CodecError, encode
from ruledb.machine.constant import Constant, Expression, Symbol
from ruledb.machine.instruction import Instruction, constants_of, parse_sequence, sequence_text
from ruledb.machine.registers import ALL_FLAGS, FLAGS, N_LANES, RSP, VIRTUAL, Register
from ruledb.machine.states import States
from ruledb.proof.oracle import Oracle
from ruledb.proof.prover import written_families
from ruledb.proof.replay import packed_flags, rflags_of
from ruledb.search.agreement import undefined_flags
from ruledb.search.alphabet import Letter, alphabet, grammar
from ruledb.search.cells import Celled, celled
from ruledb.search.enumerator import KEPT, Enumeration, Match
from ruledb.search.evaluate import Evaluator
from ruledb.search.kernels import KernelLibrary
from ruledb.search.states import N_CONSTANTS, N_FINGERPRINT, UNIVERSES, search_states
from ruledb.search.targets import Target
from ruledb.semantics.forms import features
from ruledb.store.store import PendingTarget

__all__ = ["CORE_CONSTANTS", "MAX_SYMBOLS", "REACH", "Campaign", "Form", "Found", "Naming"]

MAX_SYMBOLS = 2
"""Constant symbols of a candidate."""

CORE_CONSTANTS: tuple[Constant, ...] = (0, 1, -1, Symbol(0), Symbol(1), Expression("-", (Symbol(0),)))
"""The six immediates of length 3."""

MAX_ARITY = 4
"""Registers and cells of a window that is searched."""

REACH = {False: 3, True: 2}
"""The longest replacement that is searched for without and with memory."""

_KEPT = {False: KEPT, True: 4 * KEPT}
"""Candidates kept for a target without and with memory: few of these access memory as the window does."""

_ACCESS = (2, 1, 1)
"""Bytes, cycles and µops that an access costs beyond a register, at the least."""

_NUMBERS = 12
"""Literal constants of a campaign's own that lengths 1 and 2 may use."""

_SMALL = 29
"""Stands for every symbol where sizes are compared: an immediate of eight bits."""


@dataclass(frozen=True, slots=True)
class Naming:
    """Canonical families of one window ↔ families of a universe."""

    to_universe: dict[int, int]

    @classmethod
    def of(cls, instructions: Sequence[Instruction], universe: Sequence[int]) -> "Naming | None":
        """Implicit families keep their name, the others take what is left, in order; None where there is too little."""
        fixed = fixed_families(instructions) - {RSP}
        names = sorted(f for f in families_in(instructions) if f >= VIRTUAL)
        left = [f for f in universe if f not in fixed]
        if not fixed <= set(universe) or len(names) > len(left):
            return None
        return cls({f: f for f in fixed} | dict(zip(names, left, strict=False)))

    def there(self, instructions: Sequence[Instruction]) -> tuple[Instruction, ...]:
        """A canonical sequence on the universe's registers."""
        return rename(instructions, lambda r: Register(self.to_universe[r.family], r.width, r.high), lambda c: c)

    def back(self, instructions: Sequence[Instruction]) -> tuple[Instruction, ...] | None:
        """A candidate in canonical names; None where it names a register that the window does not have."""
        canonical = {u: c for c, u in self.to_universe.items()}
        if not families_in(instructions) <= canonical.keys():
            return None
        return rename(instructions, lambda r: Register(canonical[r.family], r.width, r.high), lambda c: c)

    def mask(self, live: int) -> int:
        """A location mask in the universe's names."""
        return live & ALL_FLAGS | sum((live >> (N_LANES * c) & 0b1111) << (N_LANES * u) for c, u in self.to_universe.items())


@dataclass(frozen=True, slots=True)
class Form:
    """What a search sees of a canonical window: registers alone, memory as *cells*."""

    instructions: tuple[Instruction, ...]
    cells: Celled | None = None

    @classmethod
    def of(cls, text: str) -> "Form | None":
        """The form of the window *text*; None where its memory cannot be written so."""
        instructions = parse_sequence(text)
        if not any(features(i) & {"memory", "rip", "branch"} for i in instructions):
            return cls(instructions)
        cells = celled(instructions)
        return cls(cells.canonical.instructions, cells) if cells is not None else None

    @property
    def arity(self) -> int | None:
        """The smallest universe that holds it."""
        return next((n for n, u in sorted(UNIVERSES.items()) if n <= MAX_ARITY and Naming.of(self.instructions, u) is not None), None)

    @property
    def n_accesses(self) -> int:
        """How often the window accesses memory."""
        return 0 if self.cells is None else len(self.cells.accesses)

    def live(self, live: int) -> int:
        """The window's *live*, here."""
        return live if self.cells is None else self.cells.live(live)

    def back(self, candidate: tuple[Instruction, ...]) -> Iterator[tuple[Instruction, ...]]:
        """The window's sequences that *candidate* stands for."""
        return iter([candidate]) if self.cells is None else self.cells.back(candidate)


@dataclass(slots=True)
class Found:
    """
    What a campaign came to: candidates (canonical text) by target id, targets that fail the self-check, how many are too
    plain for length 3 (`Enumeration.plain`), candidates looked at, matches.
    """

    candidates: dict[int, list[str]] = field(default_factory=dict)
    quarantined: list[int] = field(default_factory=list)
    n_plain: int = 0
    n_candidates: int = 0
    n_matches: int = 0
    seconds: float = 0.0


class Campaign:
    """The search for *pending* targets of one arity."""

    def __init__(self, library: KernelLibrary, arity: int, pending: Sequence[PendingTarget], *, jobs: int, in_memory: bool = False) -> None:
        """The windows of *pending* all access memory, or none does."""
        self._universe = UNIVERSES[arity]
        self._evaluator = Evaluator(library, self._universe)
        self._jobs, self._in_memory = jobs, in_memory
        self.found = Found()
        self._forms: list[Form] = []
        self._namings: list[Naming] = []
        self._pending: list[PendingTarget] = []
        self._targets: list[Target] = []
        self._check(pending)

    def _check(self, pending: Sequence[PendingTarget]) -> None:
        """Prepare the targets; quarantine those on which kernels and emulator disagree."""
        oracle, states = Oracle(), search_states(len(self._universe))
        for p in pending:
            form = Form.of(p.text)
            assert form is not None
            naming = Naming.of(form.instructions, self._universe)
            assert naming is not None, "the arity fits"
            there = naming.there(form.instructions)
            n_symbols = len(domains(form.instructions))
            cost = _cost(there, n_symbols, form.n_accesses)
            if cost is None or n_symbols > N_CONSTANTS:
                continue
            if not _same_as_emulator(oracle, self._evaluator, there, self._universe, states):
                self.found.quarantined.append(p.id)
                continue
            fixed = frozenset(fixed_families(form.instructions) - {RSP})
            live = naming.mask(form.live(p.live))
            self._targets.append(Target(there, live, written_families(there), fixed, min(n_symbols, MAX_SYMBOLS), cost, p.text))
            self._namings.append(naming)
            self._forms.append(form)
            self._pending.append(p)

    def run(self, length: int, advance: Callable[[int, int], None]) -> Found:
        """Search up to *length*; *advance* is told of candidates looked at, and of matches."""
        wide = alphabet(self._universe, (*grammar(MAX_SYMBOLS), *self._numbers()))
        enumeration = Enumeration(self._evaluator, self._universe, wide, self._targets, kept=_KEPT[self._in_memory], jobs=self._jobs)
        self._take(enumeration, enumeration.empty())
        advance(0, self.found.n_matches)
        for depth in (1, 2)[:length]:
            if depth == 2:
                enumeration.retire(enumeration.untelling())
            self._take(enumeration, enumeration.run(depth))
            self.found.n_candidates += enumeration.counters.by_length[depth]
            advance(enumeration.counters.by_length[depth], self.found.n_matches)
        if min(length, REACH[self._in_memory]) >= 3:
            self._deepest(enumeration.active, advance)
        return self.found

    def _numbers(self) -> tuple[int, ...]:
        """The numbers that most targets with literal constants hold: what replaces those may need them."""
        forms = [f for p, f in zip(self._pending, self._forms, strict=True) if p.literal]
        held = Counter(n for f in forms for n in set(constants_of(f.instructions)) if isinstance(n, int))
        common = sorted((n for n in held if n not in LITERALS), key=lambda n: (-held[n], n))
        return tuple(common[:_NUMBERS])

    def _deepest(self, active: np.ndarray, advance: Callable[[int, int], None]) -> None:
        """Length 3, with the core alphabet, for windows of three instructions and more that nothing shorter equals."""
        core: tuple[Letter, ...] = alphabet(self._universe, CORE_CONSTANTS)
        deep = Enumeration(self._evaluator, self._universe, core, self._targets, jobs=self._jobs)
        short = [i for i, t in enumerate(self._targets) if len(t.instructions) < 3 or not active[i]]
        deep.retire(short)
        deep.search.expand()
        deep.search.expand()
        plain = deep.plain()
        self.found.n_plain = len(plain)
        deep.retire(plain)
        if deep.active.any():
            self._take(deep, deep.run(3, narrow=False, flags=False))
            self.found.n_candidates += deep.counters.by_length[3]
            advance(deep.counters.by_length[3], self.found.n_matches)

    def _take(self, enumeration: Enumeration, matches: Sequence[Match] | Iterator[Match]) -> None:
        """
        Keep the candidates of *matches*, and stop looking for their targets: what is longer only adds dead code. With memory that is so
        where the candidate can be written at all.
        """
        solved = set()
        for match in matches:
            self.found.n_matches += 1
            candidate = self._namings[match.target].back(enumeration.sequence(match))
            texts = [] if candidate is None else [sequence_text(s) for s in self._forms[match.target].back(candidate)]
            if texts:
                self.found.candidates.setdefault(self._pending[match.target].id, []).extend(texts)
            if texts or not self._in_memory:
                solved.add(match.target)
        enumeration.retire(sorted(solved))


def _cost(instructions: Sequence[Instruction], n_symbols: int, n_accesses: int) -> tuple[int, int, int] | None:
    """
    (bytes, cycles as a plain sum, µops) with small constants; None where it has no encoding. A replacement may access memory less
    often, which its registers do not show: that is in the cost of the window.
    """
    times = [latency_of(i) for i in instructions]
    try:
        n_bytes = size_of(bind(instructions, (), (_SMALL,) * n_symbols))[0]
    except (CodecError, ValueError):
        return None
    extra = [n_accesses * more for more in _ACCESS]
    return n_bytes + extra[0], sum(t[0] for t in times) + extra[1], sum(t[1] for t in times) + extra[2]


def _same_as_emulator(
    oracle: Oracle, evaluator: Evaluator, instructions: Sequence[Instruction], universe: Sequence[int], states: States
) -> bool:
    """Whether kernels and emulator agree on the fingerprint states, undefined flags apart. The emulator runs the bytes."""
    n_symbols = len(domains(instructions))
    n = N_FINGERPRINT
    few = States(np.ascontiguousarray(states.registers[:, :n]), states.flags[:n], states.constants[:, :n], states.poison[:n])
    registers, flags = evaluator.run(instructions, few)
    care = ~undefined_flags(evaluator, instructions, few) & np.uint8((1 << len(FLAGS)) - 1)
    for k in range(N_FINGERPRINT):
        constants = few.constants[:, k].astype(np.int64).tolist()
        constants += [1] * (n_symbols - len(constants))
        row = np.zeros((1, 17), np.uint64)
        row[0, list(universe)] = few.registers[:, k]
        row[:, 16] = rflags_of(few.flags[k : k + 1])
        try:
            code = b"".join(map(encode, bind(instructions, (), constants)))
        except CodecError:
            return False
        after = oracle.run(code, row)
        if (after[0, list(universe)] != registers[:, k]).any() or (packed_flags(after) ^ flags[k : k + 1]) & care[k : k + 1]:
            return False
    return True
