"""The steps of migrations, as data."""
