"""Test whether descriptions make the right skill win the requests for it."""
