"""The fixtures of the whole suite, one file each in tests/support/."""

pytest_plugins: list[str] = [
    "tests.support.postgres",
    "tests.support.cayu_postgres",
    "tests.support.cayu_stores",
    "tests.support.cayu_settled",
]
