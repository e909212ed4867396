"""What a model reads of skills: their instructions, their files and their answers."""
