"""Economy: what a scheduler could have loaded, kept and offered, from the reference's state."""
