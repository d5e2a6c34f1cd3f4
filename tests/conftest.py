"""The fixtures of the whole suite, one file each in tests/support/."""

pytest_plugins = ["tests.support.postgres", "tests.support.databases", "tests.support.valkey"]
