"""What an agent of LangChain keeps of skills: its conversation, messages and
checkpoints.
"""
