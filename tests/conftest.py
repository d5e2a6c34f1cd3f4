"""The fixtures of the whole suite, one file each in tests/support/."""

pytest_plugins = [
    "tests.support.databases",
    "tests.support.leftovers",
    "tests.support.postgres",
    "tests.support.reconciling",
    "tests.support.valkey",
]
