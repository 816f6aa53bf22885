"""
First schema.

Revision ID: 0001
Revises: none
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create all tables."""
    op.create_table(
        "binaries",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("n_bytes", sa.Integer(), nullable=False),
        sa.Column("n_instructions", sa.Integer(), nullable=False),
        sa.Column("n_functions", sa.Integer(), nullable=False),
        sa.Column("opaque", sa.JSON(), nullable=False),
        sa.Column("longest", sa.Integer(), nullable=False),
        sa.Column("harvested", sa.DateTime(timezone=True), server_default=sa.text("(CURRENT_TIMESTAMP)"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_binaries")),
        sa.UniqueConstraint("sha256", name=op.f("uq_binaries_sha256")),
    )
    op.create_table(
        "proofs",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("query", sa.String(length=32), nullable=False),
        sa.Column("pattern", sa.Text(), nullable=False),
        sa.Column("replacement", sa.Text(), nullable=False),
        sa.Column("required", sa.Text(), nullable=False),
        sa.Column("preserves", sa.Text(), nullable=False),
        sa.Column("verdict", sa.String(length=8), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("opinions", sa.JSON(), nullable=False),
        sa.Column("limit_ms", sa.Integer(), nullable=False),
        sa.Column("ms", sa.Float(), nullable=False),
        sa.Column("semantics", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_proofs")),
        sa.UniqueConstraint("query", name=op.f("uq_proofs_query")),
    )
    with op.batch_alter_table("proofs", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_proofs_verdict"), ["verdict"], unique=False)

    op.create_table(
        "rules",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("digest", sa.String(length=32), nullable=False),
        sa.Column("pattern", sa.Text(), nullable=False),
        sa.Column("replacement", sa.Text(), nullable=False),
        sa.Column("preserves", sa.Text(), nullable=False),
        sa.Column("size", sa.JSON(), nullable=False),
        sa.Column("time", sa.JSON(), nullable=False),
        sa.Column("march", sa.String(length=16), nullable=False),
        sa.Column("policy", sa.String(length=16), nullable=False),
        sa.Column("assumes", sa.JSON(), nullable=False),
        sa.Column("guards", sa.JSON(), nullable=False),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.Column("positions", sa.JSON(), nullable=False),
        sa.Column("branch", sa.String(length=16), nullable=False),
        sa.Column("witness", sa.Text(), nullable=False),
        sa.Column("uses", sa.Integer(), nullable=False),
        sa.Column("proofs", sa.JSON(), nullable=False),
        sa.Column("semantics", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rules")),
        sa.UniqueConstraint("digest", name=op.f("uq_rules_digest")),
    )
    with op.batch_alter_table("rules", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_rules_pattern"), ["pattern"], unique=False)

    op.create_table(
        "runs",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("started", sa.DateTime(timezone=True), server_default=sa.text("(CURRENT_TIMESTAMP)"), nullable=False),
        sa.Column("finished", sa.DateTime(timezone=True), nullable=True),
        sa.Column("options", sa.JSON(), nullable=False),
        sa.Column("result", sa.JSON(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
    )
    op.create_table(
        "windows",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("digest", sa.String(length=32), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("literal", sa.Boolean(), nullable=False),
        sa.Column("length", sa.Integer(), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_windows")),
        sa.UniqueConstraint("digest", name=op.f("uq_windows_digest")),
    )
    op.create_table(
        "counterexamples",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("proof_id", sa.Integer(), nullable=False),
        sa.Column("inputs", sa.JSON(), nullable=False),
        sa.Column("locations", sa.Text(), nullable=False),
        sa.Column("confirmed", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["proof_id"], ["proofs.id"], name=op.f("fk_counterexamples_proof_id_proofs"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_counterexamples")),
    )
    with op.batch_alter_table("counterexamples", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_counterexamples_proof_id"), ["proof_id"], unique=False)

    op.create_table(
        "targets",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("window_id", sa.Integer(), nullable=False),
        sa.Column("live", sa.Text(), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("witness", sa.Text(), nullable=False),
        sa.Column("constants", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("size_length", sa.Integer(), nullable=False),
        sa.Column("time_length", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["window_id"], ["windows.id"], name=op.f("fk_targets_window_id_windows"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_targets")),
        sa.UniqueConstraint("window_id", "live", name=op.f("uq_targets_window_id")),
    )
    with op.batch_alter_table("targets", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_targets_state"), ["state"], unique=False)

    op.create_table(
        "units",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.Column("result", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_units_run_id_runs"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_units")),
        sa.UniqueConstraint("key", name=op.f("uq_units_key")),
    )
    with op.batch_alter_table("units", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_units_run_id"), ["run_id"], unique=False)


def downgrade() -> None:
    """Drop all tables."""
    with op.batch_alter_table("units", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_units_run_id"))

    op.drop_table("units")
    with op.batch_alter_table("targets", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_targets_state"))

    op.drop_table("targets")
    with op.batch_alter_table("counterexamples", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_counterexamples_proof_id"))

    op.drop_table("counterexamples")
    op.drop_table("windows")
    op.drop_table("runs")
    with op.batch_alter_table("rules", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_rules_pattern"))

    op.drop_table("rules")
    with op.batch_alter_table("proofs", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_proofs_verdict"))

    op.drop_table("proofs")
    op.drop_table("binaries")
