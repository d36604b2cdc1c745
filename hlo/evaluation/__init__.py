"""Running a module on NumPy: the executable meaning of HLO."""
