"""What the processes of one machine may share: the state directory, where no server and no database stands in it."""

from pathlib import Path

import pytest

from config.errors import SettingsError
from config.loading import Configuration, load_configuration
from worker.redis_server import open_redis


def configured(folder: Path, **variables: str) -> Configuration:
    return load_configuration(environ=variables, cwd=folder)


async def test_roles_of_one_machine_share_a_state_dir(valkey_url: str, tmp_path: Path) -> None:
    """As the Procfile starts them: three processes in one folder."""
    settings = {"HANDBELL_REDIS__URL": valkey_url, "HANDBELL_DATABASE__URL": "postgresql://db.example/handbell"}
    configuration = configured(tmp_path, **settings)

    async with open_redis(configuration) as first, open_redis(configuration) as second:
        assert first == second


async def test_state_dir_with_the_database_is_one_process_own(valkey_url: str, tmp_path: Path) -> None:
    configuration = configured(tmp_path, HANDBELL_REDIS__URL=valkey_url)

    async with open_redis(configuration):
        with pytest.raises(SettingsError, match="is in use by process"):
            async with open_redis(configuration):
                pass
