"""Run a command that can access only its skill and its workspace.

`protocol` defines the input and the result of a sandbox; `launcher` is the host's side;
`supervisor` is the process that confines and ends each command; `self_test` proves a
level on this machine before it is used.
"""
