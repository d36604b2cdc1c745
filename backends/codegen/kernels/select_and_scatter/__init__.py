"""Gradients of pooling: windows give sources to what they select (`kernel`), or elements take them (`strided`)."""
