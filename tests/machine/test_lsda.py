"""Language-specific data areas: call sites and landing pads."""

from random import Random

import pytest

from ruledb.machine.lsda import CallSite, call_sites

START, END = 0x1000, 0x1100
PLAIN = bytes([0xFF, 0xFF, 1, 8, 0, 4, 0, 0, 4, 8, 0x20, 1])
"""No types; two sites in LEB128: [0, 4) without a pad, [4, 12) with the pad 0x20."""
FIXED = bytes([0xFF, 0x9B, 30, 3, 13]) + (16).to_bytes(4, "little") + (2).to_bytes(4, "little") + (0x80).to_bytes(4, "little") + b"\0"
"""With types; one site in words of four bytes."""


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (PLAIN, (CallSite(START + 4, START + 12, START + 0x20),)),
        (FIXED, (CallSite(START + 16, START + 18, START + 0x80),)),
        (bytes([0xFF, 0xFF, 1, 0]), ()),
    ],
)
def test_reads_call_sites(table, expected):
    """Sites with a pad are told by address, whatever follows the table."""
    assert call_sites(table, START, END) == expected
    assert call_sites(table + b"\x55" * 40, START, END) == expected


@pytest.mark.parametrize(
    "table",
    [
        b"",
        PLAIN[:-2],
        b"\x1b" + PLAIN[1:],  # pads are relative to something else
        PLAIN[:2] + b"\x05" + PLAIN[3:],  # an unknown encoding
        PLAIN[:9] + b"\xff\x01" + PLAIN[10:],  # a site that ends behind the function
        PLAIN[:10] + b"\xff\x7f" + PLAIN[11:],  # a pad behind the function
        PLAIN[:8] + b"\x02" + PLAIN[9:],  # overlapping sites
        PLAIN[:3] + b"\x07" + PLAIN[4:],  # a length that ends within a site
    ],
)
def test_what_is_not_understood_is_told(table):
    """An area that is cut short, of another form, or about other code has no answer, rather than a wrong one."""
    assert call_sites(table, START, END) is None


def test_garbage_is_survived():
    """Any bytes give an answer, and its sites lie in the function."""
    random = Random(5)
    for _ in range(3000):
        sites = call_sites(b"\xff\xff\x01" + random.randbytes(random.randrange(30)), START, END)
        assert all(START <= s.start <= s.end <= END and START < s.pad < END for s in sites or ())
