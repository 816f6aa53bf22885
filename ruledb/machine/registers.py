"""
General registers as families and lanes, and flags, all in one bit mask.

A *family* is one 64-bit register with its narrower names (al, ax, eax, rax).
A family has four *lanes*: bits 7..0, 15..8, 31..16 and 63..32. A location mask is an int:
bit ``4 * family + lane`` for a lane, bit ``FLAG_SHIFT + flag`` for a flag, and one bit for each of `EFFECTS`.

Families 0..15 are the hardware registers by encoding number; families 16..23 are the
canonical registers r0..r7 of canonical forms.
"""

from dataclasses import dataclass
from functools import lru_cache

__all__ = [
    "ACCESSES",
    "ALL_FLAGS",
    "ALL_REGISTERS",
    "EFFECTS",
    "FAULTS",
    "FLAGS",
    "FLAG_BIT",
    "FLAG_SHIFT",
    "MEMORY",
    "N_FAMILIES",
    "N_HARDWARE",
    "N_LANES",
    "N_VIRTUAL",
    "RAX",
    "RBP",
    "RBX",
    "RCX",
    "RDI",
    "RDX",
    "RSI",
    "RSP",
    "TAKEN",
    "VIRTUAL",
    "Register",
    "families_of",
    "family_mask",
    "flags_of",
    "lane_bits",
    "lane_mask",
    "mask_text",
    "parse_mask",
    "register_named",
    "written_mask",
]

N_LANES = 4
N_HARDWARE = 16
N_VIRTUAL = 8
N_FAMILIES = N_HARDWARE + N_VIRTUAL
VIRTUAL = N_HARDWARE
"""Family number of the canonical register r0."""

RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI = range(8)

FLAGS = ("CF", "PF", "AF", "ZF", "SF", "OF")
FLAG_SHIFT = N_LANES * N_FAMILIES
FLAG_BIT = {name: 1 << (FLAG_SHIFT + i) for i, name in enumerate(FLAGS)}
ALL_FLAGS = sum(FLAG_BIT.values())
MEMORY, ACCESSES, FAULTS, TAKEN = (1 << (FLAG_SHIFT + len(FLAGS) + i) for i in range(4))
"""What a window does besides its registers and flags: the bytes it leaves in memory, which accesses and divisions it
performs, whether one of them may fault where the window's own do not, and whether its closing jump is taken."""

EFFECTS = {"memory": MEMORY, "accesses": ACCESSES, "faults": FAULTS, "taken": TAKEN}
"""Name → location bit."""

ALL_REGISTERS = (1 << (N_LANES * N_HARDWARE)) - 1
"""Every lane of the sixteen hardware registers."""

lane_bits = ((0, 8), (8, 8), (16, 16), (32, 32))
"""Per lane: lowest bit and number of bits."""

_LANES = {(8, False): 0b0001, (8, True): 0b0010, (16, False): 0b0011, (32, False): 0b0111, (64, False): 0b1111}
_NAMED_LANES = {bits: key for key, bits in _LANES.items()}


@dataclass(frozen=True, slots=True, order=True)
class Register:
    """One name of a family: the low *width* bits, or bits 15..8 when *high*."""

    family: int
    width: int
    high: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.family < N_FAMILIES:
            raise ValueError(f"register family {self.family}: expected 0..{N_FAMILIES - 1}")
        if (self.width, self.high) not in _LANES:
            raise ValueError(f"register width {self.width} (high={self.high}): expected 8, 16, 32 or 64; high only with 8")
        if self.high and VIRTUAL > self.family > RBX:
            raise ValueError(f"family {self.family} has no high byte: only ah, ch, dh and bh exist")

    @property
    def is_virtual(self) -> bool:
        """Whether this is a canonical register r0..r7."""
        return self.family >= VIRTUAL

    def resized(self, width: int) -> "Register":
        """The same family at another width (low bits)."""
        return Register(self.family, width)

    def __str__(self) -> str:
        return _NAMES[self]


def lane_mask(register: Register) -> int:
    """Mask of the lanes that *register* names (what reading it reads)."""
    return _LANES[register.width, register.high] << (N_LANES * register.family)


def written_mask(register: Register) -> int:
    """Mask of the lanes that writing *register* changes: a 32-bit write clears bits 63..32."""
    return family_mask(register.family) if register.width == 32 else lane_mask(register)


def family_mask(family: int) -> int:
    """Mask of all four lanes of *family*."""
    return 0b1111 << (N_LANES * family)


def families_of(mask: int) -> tuple[int, ...]:
    """Families with at least one lane in *mask*, ascending."""
    return tuple(f for f in range(N_FAMILIES) if mask & family_mask(f))


def flags_of(mask: int) -> tuple[str, ...]:
    """Names of the flags in *mask*, in the order of `FLAGS`."""
    return tuple(name for name in FLAGS if mask & FLAG_BIT[name])


def _names() -> dict[Register, str]:
    legacy = ("ax", "cx", "dx", "bx", "sp", "bp", "si", "di")
    names: dict[Register, str] = {}
    for family, stem in enumerate(legacy):
        byte = stem[0] + "l" if family < 4 else stem + "l"
        for width, name in ((64, "r" + stem), (32, "e" + stem), (16, stem), (8, byte)):
            names[Register(family, width)] = name
        if family < 4:
            names[Register(family, 8, high=True)] = stem[0] + "h"
    numbered = [(family, f"r{family}") for family in range(8, N_HARDWARE)]
    numbered += [(VIRTUAL + i, f"r{i}") for i in range(N_VIRTUAL)]
    for family, stem in numbered:
        for width, suffix in ((64, ""), (32, "d"), (16, "w"), (8, "b")):
            names[Register(family, width)] = stem + suffix
        if family >= VIRTUAL:
            names[Register(family, 8, high=True)] = stem + "h"
    return names


_NAMES = _names()
_BY_NAME = {name: register for register, name in _NAMES.items()} | {f"r{family}l": Register(family, 8) for family in range(8, N_HARDWARE)}


def register_named(name: str) -> Register | None:
    """The register called *name* (``eax``, ``r9d``, canonical ``r0b``), or None."""
    return _BY_NAME.get(name)


@lru_cache(maxsize=1 << 14)
def mask_text(mask: int) -> str:
    """Text of a location mask: register names, odd lanes as ``rax[63:32]``, then flags and effects; ``-`` when empty."""
    parts: list[str] = []
    for family in families_of(mask):
        lanes = mask >> (N_LANES * family) & 0b1111
        if lanes in _NAMED_LANES:
            width, high = _NAMED_LANES[lanes]
            parts.append(
                str(Register(family, width, high)) if not high or family >= VIRTUAL or family <= RBX else f"{Register(family, 64)}[15:8]"
            )
            continue
        for lane, (low, n) in enumerate(lane_bits):
            if lanes >> lane & 1:
                parts.append(f"{Register(family, 64)}[{low + n - 1}:{low}]")
    return " ".join([*parts, *flags_of(mask), *(name for name, bit in EFFECTS.items() if mask & bit)]) or "-"


def parse_mask(text: str) -> int:
    """
    Mask of a text made by `mask_text`, or of register, flag and effect names split by spaces or commas.

    Raises:
        ValueError: A word is neither a register, a lane, a flag, nor an effect.

    """
    mask = 0
    for word in text.replace(",", " ").split():
        if word == "-":
            continue
        name, _, lane = word.partition("[")
        register = register_named(name.lower())
        if word.upper() in FLAG_BIT:
            mask |= FLAG_BIT[word.upper()]
        elif word in EFFECTS:
            mask |= EFFECTS[word]
        elif register is not None and not lane:
            mask |= lane_mask(register)
        elif register is not None and (found := [i for i, (low, n) in enumerate(lane_bits) if f"{low + n - 1}:{low}]" == lane]):
            mask |= 1 << (N_LANES * register.family + found[0])
        else:
            raise ValueError(f"{word!r} is not a register or flag: expected names such as rax, eax, al, CF, ZF")
    return mask
