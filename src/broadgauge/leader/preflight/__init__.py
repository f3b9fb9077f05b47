"""Is every machine of an allocation fit for its launches? Asked before the first of them."""
