"""
What a rule would put in place of a window, or why it may not; and its bytes at one place.

Where the closing jump and a rip-relative operand of a replacement lead is the place's business: their distances are worked out
there, from the addresses that the window has.
"""

from dataclasses import dataclass, replace

from ruledb.machine.canonical import bind, canonicalise
from ruledb.machine.codec import CodecError, Decoded, agrees, decode, encode_at, normalise
from ruledb.machine.constant import Constant
from ruledb.machine.instruction import Instruction, Mem
from ruledb.machine.rule import Rule
from ruledb.machine.window import Window

__all__ = ["DISTANCE_BYTES", "LIVE_FLAGS", "LIVE_REGISTER", "UNFRAMED", "Candidate", "Option", "Refusal", "placed"]

LIVE_REGISTER, LIVE_FLAGS = "live register", "live flags"
"""Why an option may not be taken at a place: what it changes may be read behind."""

UNFRAMED = "no frame base"
"""Why a rule about slots of the stack may not be applied: what addresses them need not be an address of the stack."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A place where the rule of *digest* matches, but is not applied."""

    reason: str
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Option:
    """
    A rule on a sequence of encodings.

    Attributes:
        digest: Of the rule.
        before: The instructions that it replaces.
        after: The instructions that it puts there.
        code: Their bytes.
        dead: Mask over hardware families and flags of what must not be read behind the window.
        saved: By the index's cost model.
        bytes_saved: Filler does not count.
        cycles_saved: On the dependency chain of the window.
        wants_frame: Whether rbp must hold an address of the stack before the window.
        closing: The closing jump's bytes without its distance, which depends on the place; none where there is no jump.
        relative: The rule, where a rip-relative operand makes the bytes depend on the place.
        policy: The rule's memory policy.
        march: The level of the processor that the rule needs.

    """

    digest: str
    before: tuple[Instruction, ...]
    after: tuple[Instruction, ...]
    code: bytes
    dead: int
    saved: tuple[int, ...]
    bytes_saved: int
    cycles_saved: int
    wants_frame: bool = False
    closing: bytes = b""
    relative: Rule | None = None
    policy: str = "none"
    march: str = "x86-64"

    @property
    def assumes(self) -> tuple[str, ...]:
        """What the rule assumes of the place."""
        return ("stack(rbp)",) if self.wants_frame else ()


DISTANCE_BYTES = {1: 1, 2: 4}
"""Bytes of the distance of a conditional jump, by those of its opcode."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """An option at a place where it may be taken, and its bytes there."""

    window: Window
    option: Option
    code: bytes


def placed(option: Option, window: Window) -> Candidate | Refusal:
    """*option* at the place of *window*: its bytes there, where they reach what they refer to."""
    option = replace(option, before=window.instructions)
    code: bytes | None = option.code
    if option.relative is not None:
        option, code = _with_addresses(option, option.relative, window)
    if code is not None and option.closing:
        jump = window.decoded[-1]
        option = replace(option, after=(*option.after[:-1], Instruction(option.after[-1].mnemonic, jump.instruction.operands)))
        code = _with_jump(code, option.closing, window.start, jump)
    if code is None:
        return Refusal("does not fit", option.digest)
    # Filler between the instructions is room, too.
    return Candidate(window, option, code) if len(code) <= window.end - window.start else Refusal("longer", option.digest)


def _with_addresses(option: Option, rule: Rule, window: Window) -> tuple[Option, bytes | None]:
    """The option with the addresses of *window*, and its bytes at that place; none where an address is too far, or lengths differ."""
    forms = (canonicalise(window.instructions, literal=literal) for literal in (False, True))
    canonical = next(c for c in forms if c is not None and c.instructions == rule.pattern)
    constants = [c for c in canonical.constants if isinstance(c, int)]
    after = bind(rule.replacement, canonical.families, constants, canonical.target)
    body, code = after[: len(after) - bool(option.closing)], b""
    try:
        for instruction in body:
            code += encode_at(instruction, window.start + len(code))
    except CodecError:
        return option, None
    written = tuple(d.instruction for d in decode(code, window.start))
    is_right = len(code) == len(option.code) and written == tuple(map(_normalised, body)) and agrees(code)
    return replace(option, after=(*written, *after[len(body) :])), code if is_right else None


def _normalised(instruction: Instruction) -> Instruction:
    """`normalise`, wherever its rip-relative operand is."""
    addresses = [o.displacement for o in instruction.operands if isinstance(o, Mem) and o.rip]
    near = normalise(_readdressed(instruction, 0)) if addresses else normalise(instruction)
    return _readdressed(near, addresses[0]) if addresses else near


def _readdressed(instruction: Instruction, address: Constant) -> Instruction:
    operands = tuple(replace(o, displacement=address) if isinstance(o, Mem) and o.rip else o for o in instruction.operands)
    return Instruction(instruction.mnemonic, operands)


def _with_jump(code: bytes, closing: bytes, start: int, jump: Decoded) -> bytes | None:
    """*code* from *start* on, closed by a jump to where *jump* goes; None where that does not reach."""
    size = DISTANCE_BYTES[len(closing)]
    distance = (jump.target or 0) - (start + len(code) + len(closing) + size)
    reaches = -(1 << 8 * size - 1) <= distance < 1 << 8 * size - 1
    return code + closing + distance.to_bytes(size, "little", signed=True) if reaches else None
