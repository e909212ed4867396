"""What several scripts here have in common."""

from .options import add_output_options

DAYS = ("mon", "tue", "wed")
__all__ = ["DAYS", "add_output_options"]
