"""What an image holds at many addresses at once."""

import numpy as np
from numpy.typing import NDArray

from ruledb.machine.elf import Image

__all__ = ["bytes_at", "words_at"]


def bytes_at(image: Image, addresses: NDArray[np.uint64], n_bytes: int) -> NDArray[np.uint8]:
    """The *n_bytes* at each of *addresses*, shape (addresses, bytes); zeros where a segment ends, or nothing is mapped from the file."""
    data = np.frombuffer(image.data, dtype=np.uint8)
    found = np.zeros((len(addresses), n_bytes), dtype=np.uint8)
    for segment in reversed(image.segments):  # of those that overlap, the first one counts
        last = segment.address + segment.file_size
        inside = np.flatnonzero((addresses >= segment.address) & (addresses < last))
        found[inside] = 0
        for k in range(n_bytes):
            reached = inside[addresses[inside] < last - k] if segment.file_size > k else inside[:0]
            found[reached, k] = data[(addresses[reached] - np.uint64(segment.address)).astype(np.int64) + segment.offset + k]
    return found


def words_at(image: Image, addresses: NDArray[np.uint64]) -> NDArray[np.int32]:
    """The signed words of 32 bits at *addresses*, as `bytes_at` reads them."""
    words: NDArray[np.int32] = bytes_at(image, addresses, 4).view("<i4")[:, 0]
    return words
