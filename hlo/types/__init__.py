"""Values that programs are made of: shapes, literals, element types, windows, groups of devices."""
