"""Keeps these tests out of the suite: their packages are in `make differential`'s own environment, which skips this."""

collect_ignore_glob = ["test_*.py"]
