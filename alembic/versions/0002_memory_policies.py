"""Keep with each verdict the memory policy and the assumptions that it holds under."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Verdicts so far are about registers alone."""
    with op.batch_alter_table("proofs", schema=None) as batch_op:
        batch_op.add_column(sa.Column("policy", sa.String(length=16), nullable=False, server_default="none"))
        batch_op.add_column(sa.Column("assumes", sa.JSON(), nullable=False, server_default="[]"))
    with op.batch_alter_table("proofs", schema=None) as batch_op:
        batch_op.alter_column("policy", server_default=None)
        batch_op.alter_column("assumes", server_default=None)


def downgrade() -> None:
    """What was proved with memory goes with its policy: without it nobody knows what it says."""
    op.execute("DELETE FROM proofs WHERE policy != 'none'")
    with op.batch_alter_table("proofs", schema=None) as batch_op:
        batch_op.drop_column("assumes")
        batch_op.drop_column("policy")
