"""The CPU backend: HLO to native code through LLVM."""
