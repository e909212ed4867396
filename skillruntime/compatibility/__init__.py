"""The parts of comparing contracts: what differs, whether it breaks, and the witness."""
