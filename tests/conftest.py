"""The fixtures of the whole suite, one file each in tests/support/."""

pytest_plugins = [
    "tests.support.leftovers",
    "tests.support.logs",
    "tests.support.postgres",
    "tests.support.databases",
    "tests.support.cayu_postgres",
    "tests.support.cayu_stores",
    "tests.support.listeners",
    "tests.support.one_pause",
    "tests.support.product",
    "tests.support.cayu_settled",
    "tests.support.pause_ledgers",
    "tests.support.reconciling",
    "tests.support.cayu_ends",
    "tests.support.valkey",
]
