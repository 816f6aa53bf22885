"""What the terms read, write and overwrite is what the decoder says, save for differences that are explained."""

from form_list import cases, memory_cases

from ruledb.machine.codec import decode
from ruledb.machine.registers import FLAG_BIT
from ruledb.semantics.forms import bind
from ruledb.semantics.symbolic import reads_and_writes

EXPLAINED = {
    ("xchg", "reads"): "with one 64-bit register it is a NOP, which reads nothing",
    ("xchg", "writes"): "as above",
    ("cbw", "writes"): "writing ax leaves al as it was",
    ("shld", "kills"): "a count above 16 leaves a 16-bit result undefined: not overwritten with anything known",
    ("shrd", "kills"): "as above",
    ("lea", "reads"): "the low 16 bits of an address depend on no others",
    ("bextr", "reads"): "the control's bits above 15 do not count",
    ("bzhi", "reads"): "the index's bits above 7 do not count",
    ("shlx", "reads"): "the count's bits above 7 do not count",
    ("shrx", "reads"): "as above",
    ("sarx", "reads"): "as above",
}
"""Mnemonic and mask → why the decoder says less than the terms (reads, writes), or more (kills)."""


def _differences():
    for case in (*cases(), *memory_cases()):
        decoded = next(decode(case.code))
        reads, may, must = reads_and_writes(case.instruction)
        undefined = sum(FLAG_BIT[f] for f in bind(case.instruction).form.undefined)
        wrong = {"reads": reads & ~decoded.reads, "writes": may & ~decoded.writes, "kills": decoded.kills & ~(must | undefined)}
        yield from ((case.instruction.mnemonic, name) for name, mask in wrong.items() if mask)


def test_the_decoder_misses_nothing():
    """Whatever a form's terms read or may write the decoder names, and what it takes for overwritten is: liveness relies on it."""
    assert set(_differences()) == EXPLAINED.keys()
