"""The files of a call: the workspace, private copies, and temporary directories."""
