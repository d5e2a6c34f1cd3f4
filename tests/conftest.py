"""The fixtures of the whole suite, one file each in tests/support/ (one that is used by another stands before it)."""

pytest_plugins = [
    "tests.support.leftovers",
    "tests.support.postgres",
    "tests.support.databases",
    "tests.support.reconciling",
    "tests.support.valkey",
]
