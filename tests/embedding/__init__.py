"""The library that other programs embed."""
