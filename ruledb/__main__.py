"""``python -m ruledb``."""

from ruledb.cli import main

main()
