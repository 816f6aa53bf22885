"""What most tests write: sequences, masks and rules as text."""

from ruledb.machine.codec import normalise
from ruledb.machine.instruction import parse_sequence
from ruledb.machine.registers import ALL_FLAGS, parse_mask
from ruledb.machine.rule import Proof, Rule

FLAGS = "CF PF AF ZF SF OF"


def seq(text):
    """The instructions of *text*."""
    return parse_sequence(text)


def code(text):
    """The instructions of *text* as the decoder would give them."""
    return tuple(map(normalise, parse_sequence(text)))


def mask(text):
    """The location mask of *text*; ``all`` stands for all flags."""
    return parse_mask(text.replace("all", "")) | (ALL_FLAGS if "all" in text.split() else 0)


def rule(pattern, replacement, preserves, **facts):
    """A rule that claims *preserves*; what it saves is made up."""
    given = {"size": (1, 0), "time": (0, 0, 0, 1)} | facts
    return Rule(seq(pattern), seq(replacement), mask(preserves), **given)


PROOFS = (Proof("functional", "bitwuzla", "0.10.0", 5000, "a" * 32), Proof("relational", "z3", "5.4.1.0", 5000, "b" * 32))

ADD_TO_INC = rule("add r0d, 1", "inc r0d", "r0 PF AF ZF SF OF", proofs=PROOFS, witness="vm-O0:0x401000", uses=3)
MOV_TO_XOR = rule("mov r0, 0", "xor r0d, r0d", "r0", proofs=PROOFS, witness="vm-O0:0x401010", uses=7)
LEA_TO_ADD = rule("lea r0, [r0+c0]", "add r0, c0", "r0", proofs=PROOFS, witness="vm-O0:0x401020")
SELF_MOVE = rule("mov r0, r0", "", "r0 all", proofs=PROOFS)
RULES = (ADD_TO_INC, MOV_TO_XOR, LEA_TO_ADD, SELF_MOVE)
