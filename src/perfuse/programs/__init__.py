"""What program files contain: a machine, XRay instrumentation maps, unwind tables."""
