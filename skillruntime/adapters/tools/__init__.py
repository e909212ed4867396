"""The tools that every adapter gives a model: their names, their schemas, their
answers.
"""
