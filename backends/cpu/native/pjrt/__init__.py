"""The PJRT C API in machine code: errors, events, buffers and runs, which may not enter Python."""
