"""What only one format has: a package each."""
