"""The state that a LangChain agent keeps about skills: its conversation, messages and
checkpoints.
"""
