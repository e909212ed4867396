"""Read the text that a model wrote into arguments."""
