"""What of a profile is drawn: timelines, calls for timeline viewers, flame graphs, pages."""
