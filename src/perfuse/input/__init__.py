"""Inputs: pipes and devices, limits of unpacking, files that others write."""
