"""The parts of ``skillruntime remote``."""
