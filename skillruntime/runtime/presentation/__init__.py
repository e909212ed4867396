"""Write the texts that a model reads: the skills' instructions, files and answers."""
