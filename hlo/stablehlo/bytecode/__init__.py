"""MLIR bytecode with StableHLO in it, read without MLIR: portable artifacts (dialect vhlo) and `jax.export` files."""
