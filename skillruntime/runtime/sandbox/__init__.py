"""Run a command that can access only its skill and its workspace.

`protocol` says what a sandbox is given and what it returns; `launcher` is the host's
side, `supervisor` the process that confines and ends each command; `self_test` proves a
level on this machine before it is used.
"""
