"""
The tables. Location masks are stored as text (they have more than 64 bits), lists as JSON.

Every constraint has a name by convention, so that migrations can speak of it on every database.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, DateTime, Float, ForeignKey, Index, MetaData, String, Text, UniqueConstraint, func
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

__all__ = ["Base", "Binary", "Counterexample", "ProofRow", "RuleRow", "Run", "Target", "Unit", "Window"]


class Base(DeclarativeBase):
    """Common metadata: names of constraints."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_name)s",
            "uq": "uq_%(table_name)s_%(column_0_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )


class Binary(Base):
    """A harvested binary, known by its content."""

    __tablename__ = "binaries"
    id: Mapped[int] = mapped_column(primary_key=True)
    sha256: Mapped[str] = mapped_column(String(64), unique=True)
    path: Mapped[str] = mapped_column(Text)
    n_bytes: Mapped[int]
    n_instructions: Mapped[int]
    n_functions: Mapped[int]
    opaque: Mapped[dict[str, int]] = mapped_column(JSON)
    longest: Mapped[int]
    harvested: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=func.now())


class Window(Base):
    """A canonical window: *text* is its key; *literal* says whether its constants are numbers."""

    __tablename__ = "windows"
    id: Mapped[int] = mapped_column(primary_key=True)
    digest: Mapped[str] = mapped_column(String(32), unique=True)
    text: Mapped[str] = mapped_column(Text)
    literal: Mapped[bool]
    length: Mapped[int]
    count: Mapped[int]


class Target(Base):
    """
    A window with one live-out set.

    *state* is ``pending``, ``covered`` (a rule already improves a part of it), ``searched``, ``improved`` or
    ``quarantined`` (kernels and emulator disagree: a defect of ours). *size_length* and *time_length* say how long the
    replacements were that it was searched for under each cost model; 0: not at all.
    """

    __tablename__ = "targets"
    __table_args__ = (UniqueConstraint("window_id", "live"), Index(None, "state"))
    id: Mapped[int] = mapped_column(primary_key=True)
    window_id: Mapped[int] = mapped_column(ForeignKey("windows.id", ondelete="CASCADE"))
    live: Mapped[str] = mapped_column(Text)
    count: Mapped[int]
    witness: Mapped[str] = mapped_column(Text)
    constants: Mapped[list[int]] = mapped_column(JSON)
    state: Mapped[str] = mapped_column(String(16), default="pending")
    size_length: Mapped[int] = mapped_column(default=0)
    time_length: Mapped[int] = mapped_column(default=0)


class RuleRow(Base):
    """A proved rule: see `ruledb.machine.rule.Rule`."""

    __tablename__ = "rules"
    id: Mapped[int] = mapped_column(primary_key=True)
    digest: Mapped[str] = mapped_column(String(32), unique=True)
    pattern: Mapped[str] = mapped_column(Text, index=True)
    replacement: Mapped[str] = mapped_column(Text)
    preserves: Mapped[str] = mapped_column(Text)
    size: Mapped[list[int]] = mapped_column(JSON)
    time: Mapped[list[int]] = mapped_column(JSON)
    march: Mapped[str] = mapped_column(String(16))
    policy: Mapped[str] = mapped_column(String(16))
    assumes: Mapped[list[str]] = mapped_column(JSON)
    guards: Mapped[list[str]] = mapped_column(JSON)
    facts: Mapped[list[str]] = mapped_column(JSON)
    positions: Mapped[list[int]] = mapped_column(JSON)
    branch: Mapped[str] = mapped_column(String(16))
    witness: Mapped[str] = mapped_column(Text)
    uses: Mapped[int]
    proofs: Mapped[list[list[Any]]] = mapped_column(JSON)
    semantics: Mapped[str] = mapped_column(String(32))


class ProofRow(Base):
    """A verdict on (pattern, replacement, required): proved, refuted or unknown. All are kept; unknown is never a rule."""

    __tablename__ = "proofs"
    __table_args__ = (UniqueConstraint("query"), Index(None, "verdict"))
    id: Mapped[int] = mapped_column(primary_key=True)
    query: Mapped[str] = mapped_column(String(32))
    pattern: Mapped[str] = mapped_column(Text)
    replacement: Mapped[str] = mapped_column(Text)
    required: Mapped[str] = mapped_column(Text)
    preserves: Mapped[str] = mapped_column(Text)
    verdict: Mapped[str] = mapped_column(String(8))
    reason: Mapped[str] = mapped_column(Text)
    opinions: Mapped[list[list[Any]]] = mapped_column(JSON)
    limit_ms: Mapped[int]
    ms: Mapped[float] = mapped_column(Float)
    policy: Mapped[str] = mapped_column(String(16))
    assumes: Mapped[list[str]] = mapped_column(JSON)
    semantics: Mapped[str] = mapped_column(String(32))


class Counterexample(Base):
    """A state on which two sides differ, replayed in the emulator; kept as a test state."""

    __tablename__ = "counterexamples"
    id: Mapped[int] = mapped_column(primary_key=True)
    proof_id: Mapped[int] = mapped_column(ForeignKey("proofs.id", ondelete="CASCADE"), index=True)
    inputs: Mapped[dict[str, str]] = mapped_column(JSON)
    locations: Mapped[str] = mapped_column(Text)
    confirmed: Mapped[bool]


class Run(Base):
    """One training run."""

    __tablename__ = "runs"
    id: Mapped[int] = mapped_column(primary_key=True)
    started: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=func.now())
    finished: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
    options: Mapped[dict[str, Any]] = mapped_column(JSON)
    result: Mapped[dict[str, Any] | None] = mapped_column(JSON)


class Unit(Base):
    """A unit of work that is done: *key* names what was searched, with which alphabet and meaning."""

    __tablename__ = "units"
    id: Mapped[int] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(String(64), unique=True)
    kind: Mapped[str] = mapped_column(String(16))
    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), index=True)
    seconds: Mapped[float] = mapped_column(Float)
    result: Mapped[dict[str, Any]] = mapped_column(JSON)
