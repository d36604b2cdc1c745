"""Fourier transforms: numbers (`plan`, `twiddles`), lines in lanes (`butterflies`, `passes`, `moves`), `kernel`."""
