"""Rules: a proved pattern ⇒ replacement, where it holds, and what it saves."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ruledb.machine.canonical import domains, text_digest, touched_mask
from ruledb.machine.instruction import Imm, Instruction, Mem, Other, sequence_text
from ruledb.machine.registers import ALL_FLAGS, Register, mask_text

__all__ = ["Proof", "Rule", "skeleton"]


@dataclass(frozen=True, slots=True)
class Proof:
    """One solver's proof of one encoding of the equivalence query."""

    encoding: str
    solver: str
    version: str
    limit_ms: int
    query_digest: str


@dataclass(frozen=True, slots=True)
class Rule:
    """
    *pattern* may be replaced by *replacement* wherever no live location is outside *preserves*.

    Attributes:
        preserves: Mask over canonical families and flags of what is proved equal after both sides; it covers
            every lane of every family that either side touches.
        size: (bytes, instructions) saved, of the canonical example encoding.
        time: Saved (memory accesses and branches, cycles on the dependency chain, µops, bytes).
        march: The instruction-set level that the replacement needs.
        policy: Memory policy; ``none`` where neither side touches memory.
        assumes: Site conditions to discharge, such as ``stack(rbp)``.
        guards: Conditions on the constants.
        facts: Facts about inputs that the proof used.
        positions: Positions of the pattern's instructions in its span; empty when contiguous.
        branch: The condition that the replacement's closing jump uses, if the window ends in one.
        proofs: Both opinions.
        witness: Where the pattern was harvested: ``file:0xaddress``.
        uses: How often the pattern was seen in the training binaries, improvable there.

    """

    pattern: tuple[Instruction, ...]
    replacement: tuple[Instruction, ...]
    preserves: int
    size: tuple[int, int]
    time: tuple[int, int, int, int]
    march: str = "x86-64"
    policy: str = "none"
    assumes: tuple[str, ...] = ()
    guards: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    positions: tuple[int, ...] = ()
    branch: str = ""
    proofs: tuple[Proof, ...] = ()
    witness: str = ""
    uses: int = field(default=0, compare=False)

    @property
    def text(self) -> str:
        """Everything that says what the rule claims, save `preserves` (one rule per pattern and replacement)."""
        conditions = [self.march, self.policy, *self.assumes, *self.guards, *self.facts, *map(str, self.positions), self.branch]
        return f"{sequence_text(self.pattern)} => {sequence_text(self.replacement)} | {' '.join(conditions).strip()}"

    @property
    def digest(self) -> str:
        """Identity of the rule: content hash of `text`."""
        return text_digest(self.text)

    def merged(self, other: "Rule") -> "Rule":
        """The same rule proved twice: locations are proved one by one, so it preserves what either proof says."""
        assert self.digest == other.digest, "two different rules"
        proofs = (*self.proofs, *(p for p in other.proofs if p not in self.proofs))
        return replace(self, preserves=self.preserves | other.preserves, proofs=proofs)

    @property
    def touched(self) -> int:
        """Lanes of every family that either side touches, and all flags."""
        return touched_mask(self.pattern) | touched_mask(self.replacement) | ALL_FLAGS

    @property
    def dead(self) -> str:
        """Text of the locations that must be dead behind the window."""
        return mask_text(self.touched & ~self.preserves)

    @property
    def constant_bits(self) -> tuple[int, ...]:
        """Domain of each constant symbol, in bits."""
        return domains(self.pattern)


def skeleton(pattern: Sequence[Instruction], replacement: Sequence[Instruction]) -> str:
    """Mnemonics and operand shapes of both sides; constants and register identity do not count."""
    return f"{_shape(pattern)} => {_shape(replacement)}"


def _shape(instructions: Sequence[Instruction]) -> str:
    def operand_shape(operand: object) -> str:
        match operand:
            case Register(_, width, high):
                return f"r{width}{'h' if high else ''}"
            case Imm():
                return "imm"
            case Mem(base, index, scale, displacement, width):
                return f"m{width}[{'b' if base else ''}{f'i{scale}' if index else ''}{'d' if displacement != 0 else ''}]"
            case Other(name):
                return name
        return "label"

    return "; ".join(" ".join([i.mnemonic, ",".join(map(operand_shape, i.operands))]).strip() for i in instructions)
