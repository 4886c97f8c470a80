"""Joining several recordings into one profile: finding files, matching them, aligning their clocks."""

from perfuse.fusing.joining import Rate, fuse

__all__ = ["Rate", "fuse"]
