"""Laws of the house that no linter holds."""
