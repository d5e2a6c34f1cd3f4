"""Opens the keyset that the settings name, at the start of a process that needs it."""

from pathlib import Path

from config.clock import Clock
from config.errors import SettingsError
from config.loading import Configuration
from worker.answers.keyset_file import FileKeyset, make_keyset, read_keyset

KEYSET_FILE = "answer-keys.json"
FIRST_KID = "k1"


def keyset_path(configuration: Configuration) -> Path:
    """Return the file of the keys: the configured one, else the one in `state_dir`.

    Raises SettingsError where none is configured and other processes share the database: each would make its own.
    """
    configured = configuration.settings.answers.keyset
    if configured is not None:
        return configuration.folder / configured.expanduser()
    if configuration.settings.database.url is not None:
        raise SettingsError(
            "[answers] keyset is not set: processes that share a database share their keys, name the file there "
            "(`handbell tokens rotate` makes it)"
        )
    return configuration.state_dir / KEYSET_FILE


def open_keyset(configuration: Configuration, clock: Clock) -> FileKeyset:
    """Return the keyset; an embedded first run makes one. Raises SettingsError (one line) where it cannot be used."""
    path = keyset_path(configuration)
    if configuration.settings.answers.keyset is None:
        make_keyset(path, FIRST_KID)
    else:
        read_keyset(path)
    return FileKeyset(path, clock)
