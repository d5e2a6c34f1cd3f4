"""The errors of the room everything stands on.

ConfigError                 one line for the user; exit code `exit_code`
  SettingsError             the command line, the file or the environment is wrong (2)
  SchemaError               the database is not migrated, or is newer than this code (2)
  DependencyError           a database or server does not answer (1)
"""


class ConfigError(Exception):
    """A user's problem, said in one line: what, where, what to do."""

    exit_code = 2


class SettingsError(ConfigError):
    """The command line, the configuration file or the environment cannot be used as it is."""


class SchemaError(ConfigError):
    """The database is not at the revision that this code needs."""


class DependencyError(ConfigError):
    """A server that Handbell stands on does not answer; trying again later may succeed."""

    exit_code = 1
