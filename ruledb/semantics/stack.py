"""
The stack: a push stores below rsp, a pop loads from it; rsp is an ordinary register besides.

Results are written last first, so that `pop rsp` leaves what was loaded. The address of a popped-to operand is computed
with the new rsp (SDM vol. 2B, POP); `ruledb.semantics.forms.bind` sees to that.
"""

from pysmt.fnode import FNode

from ruledb.semantics.terms import Effect, Output, Terms

__all__ = ["leave", "pop", "push"]


def push(t: Terms, src: FNode, sp: FNode) -> Effect:
    """Memory below rsp ← src as it was before; rsp goes down by its size. SDM vol. 2B, PUSH."""
    return Effect((Output(src), Output(t.sub(sp, t.const(src.bv_width() // 8, 64)))))


def pop(t: Terms, top: FNode, sp: FNode) -> Effect:
    """The destination ← memory at rsp; rsp goes up by its size. SDM vol. 2B, POP."""
    return Effect((Output(top), Output(t.add(sp, t.const(top.bv_width() // 8, 64)))))


def leave(t: Terms, frame: FNode, bp: FNode) -> Effect:
    """Register rbp ← memory at rbp; rsp ← rbp + 8. SDM vol. 2A, LEAVE."""
    return Effect((Output(frame), Output(t.add(bp, t.const(8, 64)))))
