"""An offline builder of proved peephole rules for x86-64 binaries."""
