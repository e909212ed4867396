"""The parts of mending: how texts, scalars and keys are read, and how an edit is made."""
