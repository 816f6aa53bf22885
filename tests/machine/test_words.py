"""Reading at many addresses at once is reading at each of them."""

import numpy as np

from ruledb.machine.elf import Segment, load
from ruledb.machine.words import bytes_at, words_at


def plain(image, address, n_bytes):
    """Padded with zeros."""
    return image.read(address, n_bytes).ljust(n_bytes, b"\0")


def test_bytes_are_those_of_the_image(corpus):
    """At, before and behind the ends of all segments, and where nothing is mapped, also where segments overlap."""
    image = load(corpus / "vm-O2")
    first = image.segments[0]
    image = type(image)(
        image.name, image.data, image.kind, image.entry, (Segment(first.address + 50, 9, 60, 60, False, False), *image.segments), ()
    )
    edges = [s.address + d for s in image.segments for d in (0, s.file_size, s.file_size // 2)]
    addresses = [a for edge in edges for a in range(max(edge - 20, 0), edge + 20)] + [1 << 63, (1 << 64) - 1]
    found = bytes_at(image, np.array(addresses, dtype=np.uint64), 7)
    assert [row.tobytes() for row in found] == [plain(image, a, 7) for a in addresses]
    words = words_at(image, np.array(addresses, dtype=np.uint64))
    assert words.tolist() == [int.from_bytes(plain(image, a, 4), "little", signed=True) for a in addresses]
