"""Economy: what a lookup could have answered, computed from the reference's state."""
