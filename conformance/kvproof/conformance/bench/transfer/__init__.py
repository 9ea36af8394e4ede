"""What transfers cost: planning them, copying within host memory, and copying to and from a GPU."""
