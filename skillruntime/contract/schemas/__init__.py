"""What a schema says: whether a value fits, what is wrong with it, and where."""
