"""The scan of whole binaries finds what looking at each window finds."""

import pytest
from sample_rules import RULES

from rewriter.matcher import Candidate, RuleIndex
from rewriter.scan import Scanner
from ruledb.machine.blocks import read_program
from ruledb.machine.elf import load
from ruledb.machine.frame import framed, framed_in
from ruledb.machine.keep import kept
from ruledb.machine.liveness import live_out
from ruledb.machine.window import windows


@pytest.mark.parametrize("name", ["vm-O0", "sorting-O2", "machine-O1"])
def test_the_scan_misses_no_candidate(corpus, name):
    """The blocks found are those in which some window, looked at by itself, has a candidate, and no others."""
    program = read_program(load(corpus / "bin" / name))
    live = live_out(program)
    index, frame = RuleIndex(RULES), framed(program)
    found = Scanner(index).find(program, live, frame, program.is_open)
    expected = []
    for number in range(len(program.cuts.first)):
        block = program.block(number)
        here = framed_in(block, bool(frame[program.cuts.first[number]]))
        found_here = windows(block, live.after(block), index.longest, index.usable)
        matches = [index.match(w, is_framed=here[w.positions[0]]) for w in found_here]
        if program.is_open[number] and any(isinstance(m, Candidate) for m in matches):
            expected.append(number)
            assert not kept(block)
    assert list(found.blocks) == expected
    assert found.blocks


def test_without_rules_nothing_is_found(corpus):
    """No rules, no places."""
    program = read_program(load(corpus / "bin" / "vm-O0"))
    found = Scanner(RuleIndex(())).find(program, live_out(program), framed(program), program.is_open)
    assert (found.blocks, found.refused) == ((), {})
