"""Arrays in memory as kernels see them: element types, indices, loads and stores."""
