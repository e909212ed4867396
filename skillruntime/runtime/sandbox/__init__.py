"""Run a command so that it reaches its skill and its workspace, and nothing else of the machine.

`protocol` says what a sandbox is given and what it returns; `launcher` is the host's side, `supervisor` the process
that confines and ends each command; `self_test` proves a level on this machine before it is used.
"""
