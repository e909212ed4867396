"""The scripts here are read, and asked in processes of their own; they are never
imported.
"""

collect_ignore_glob = ["*.py"]
