"""What code generators share: LLVM IR as text, arithmetic on it, element rules and kernels. Knows no runtime."""
