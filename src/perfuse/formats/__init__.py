"""What only one format has. One file a format."""
