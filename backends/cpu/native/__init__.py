"""Everything between LLVM text and a fast call: JIT, object cache, thread pool, dispatch. Knows no HLO instruction."""
