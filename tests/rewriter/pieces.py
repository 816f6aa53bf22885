"""Blocks, windows and candidates from assembly text."""

from ruledb.machine.blocks import Block
from ruledb.machine.codec import decode, encode_at
from ruledb.machine.instruction import parse_sequence
from ruledb.machine.liveness import EVERYTHING
from ruledb.machine.registers import parse_mask
from ruledb.machine.window import windows

START = 0x1000


def code_of(text: str, start: int = START) -> bytes:
    """The bytes of *text* at *start*."""
    code = b""
    for instruction in parse_sequence(text):
        code += encode_at(instruction, start + len(code))
    return code


def block_of(text: str | bytes, start: int = START, function: int = 0) -> Block:
    """A block of the instructions *text*, or of their bytes."""
    code = code_of(text, start) if isinstance(text, str) else text
    return Block(start, function, tuple(decode(code, start)), ())


def window_of(text: str | bytes, dead: str = ""):
    """All of *text* as one window, behind which *dead* is dead and all else live."""
    block = block_of(text)
    live = EVERYTHING & ~parse_mask(dead)
    return max(windows(block, [live] * len(block.instructions), 99), key=lambda w: w.end - w.start)


def text_of(block: Block) -> str:
    """The instructions of *block*."""
    return "; ".join(str(d.instruction) for d in block.instructions)
