"""How good are predictions? What `validate` prints, and docs/validation.md."""
