"""StableHLO text: what jax prints, read into HLO. `text.parse` of the room above recognises it."""
