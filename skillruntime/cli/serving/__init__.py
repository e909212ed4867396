"""The parts of ``skillruntime serve``: its options, the servers, and their data."""
