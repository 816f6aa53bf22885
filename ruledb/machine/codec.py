"""
Instructions to bytes and back.

`CodecError` is the root of the errors, `UnknownMnemonic` one of them. The working decoder and encoder is iced-x86;
capstone is the second, independent decoder.
"""

from ruledb.machine.codec_check import OtherDecoded, agrees, decode_other
from ruledb.machine.codec_decode import Decoded, Encoding, decode, encoding_of, lengths, split, without_constants
from ruledb.machine.codec_effects import Effects, Flow
from ruledb.machine.codec_encode import CodecError, UnknownMnemonic, encode, encode_at, normalise

__all__ = [
    "CodecError",
    "Decoded",
    "Effects",
    "Encoding",
    "Flow",
    "OtherDecoded",
    "UnknownMnemonic",
    "agrees",
    "decode",
    "decode_other",
    "encode",
    "encode_at",
    "encoding_of",
    "lengths",
    "normalise",
    "split",
    "without_constants",
]
