"""
Bytes in, bytes out: where a block's windows are replaced, and what the file is then.

Nothing moves but a jump or return directly behind a window. What a window no longer needs becomes NOPs.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rewriter.matcher import Candidate
from ruledb.machine.blocks import Block
from ruledb.machine.codec import Decoded, Flow, agrees, decode
from ruledb.machine.elf import Image
from ruledb.machine.window import is_filler

__all__ = ["Edit", "apply", "nops", "patch"]


@dataclass(frozen=True, slots=True)
class Edit:
    """*code* is to stand at *address*."""

    address: int
    code: bytes

    @property
    def end(self) -> int:
        """Address behind the last byte."""
        return self.address + len(self.code)


_NOPS = tuple(
    bytes.fromhex(code)
    for code in (
        "90", "6690", "0f1f00", "0f1f4000", "0f1f440000", "660f1f440000", "0f1f8000000000", "0f1f840000000000", "660f1f840000000000",
    )
)  # fmt: skip
"""The recommended NOPs of 1 to 9 bytes. Source: Intel 64 and IA-32 Architectures SDM, volume 2B, "NOP"."""


def nops(n_bytes: int) -> bytes:
    """As few NOPs as fill *n_bytes*, the longest first."""
    longest = len(_NOPS)
    return _NOPS[-1] * (n_bytes // longest) + (_NOPS[n_bytes % longest - 1] if n_bytes % longest else b"")


def patch(block: Block, chosen: Iterable[Candidate], made: Iterable[Edit] = ()) -> tuple[Block, tuple[Edit, ...]]:
    """
    *block* with the windows of the disjoint candidates *chosen* replaced, and the edits that do it. *made* are earlier
    edits of the block: their filler is ours to merge with. Filler behind a moved jump or return is no part of the new block.
    """
    ours = {edit.end for edit in made}
    edits = tuple(_edit(block, candidate, ours) for candidate in chosen)
    instructions: list[Decoded] = []
    position = 0
    for edit in edits:
        while block.instructions[position].address < edit.address:
            instructions.append(block.instructions[position])
            position += 1
        instructions.extend(decode(edit.code, edit.address))
        while position < len(block.instructions) and block.instructions[position].address < edit.end:
            position += 1
    instructions.extend(block.instructions[position:])
    length = next((i for i, d in enumerate(instructions, 1) if d.flow in (Flow.JUMP, Flow.RETURN)), len(instructions))
    return Block(block.start, block.function, tuple(instructions[:length]), block.successors), edits


def _edit(block: Block, candidate: Candidate, ours: set[int]) -> Edit:
    """The replacement, then what freed bytes and NOPs behind the window become."""
    window, code = candidate.window, candidate.code
    behind = block.instructions[window.positions[-1] + 1 :]
    n_filler = next((i for i, d in enumerate(behind) if not is_filler(d)), len(behind))
    # At a block's end, NOPs may align what follows: of those, only our own may change.
    absorbed = [d for d in behind[:n_filler] if n_filler < len(behind) or d.end in ours]
    end = absorbed[-1].end if absorbed else window.end
    free = end - window.start - len(code)
    is_last = n_filler == len(behind) - 1
    moved = _moved(behind[-1], window.start + len(code)) if is_last and free else b""
    return Edit(window.start, code + moved + nops(free))


def _moved(instruction: Decoded, address: int) -> bytes:
    """The bytes of a jump or return when it stands at *address* instead; empty where it is neither or does not reach."""
    code = instruction.code
    if instruction.flow is Flow.RETURN:
        return code if agrees(code) else b""
    size = {0xEB: 1, 0xE9: 4}.get(code[0], 0) if instruction.flow is Flow.JUMP else 0
    if instruction.target is None or size == 0:
        return b""
    distance = instruction.target - (address + len(code))
    return code[:1] + distance.to_bytes(size, "little", signed=True) if -(1 << 8 * size - 1) <= distance < 1 << 8 * size - 1 else b""


def apply(image: Image, edits: Sequence[Edit]) -> bytes:
    """
    The bytes of *image* with *edits* made in their order.

    Raises:
        AssertionError: The result differs outside the edits, or the decoders do not read an edit alike.

    """
    data = bytearray(image.data)
    spans: list[tuple[int, int]] = []
    for edit in edits:
        offset = image.file_offset(edit.address)
        assert offset is not None
        assert image.file_offset(edit.end - 1) == offset + len(edit.code) - 1
        data[offset : offset + len(edit.code)] = edit.code
        spans.append((offset, offset + len(edit.code)))
    _require_planned(image.data, data, spans)
    for code in {edit.code for edit in edits}:
        assert agrees(code), f"the decoders read {code.hex()} differently"
    return bytes(data)


def _require_planned(old: bytes, new: bytes | bytearray, spans: Iterable[tuple[int, int]]) -> None:
    """Check that *old* and *new* are the same outside *spans*."""
    assert len(old) == len(new)
    restored = bytearray(new)
    for start, end in spans:
        restored[start:end] = old[start:end]
    assert restored == old, "a byte differs that no edit covers"
