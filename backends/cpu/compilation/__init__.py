"""From a module to linked code: the request, the steps with their stages, the linker."""
