"""Long lives of one engine: whether anything is found, leaks, or grows (docs/soak.md)."""
