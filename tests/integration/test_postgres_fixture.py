"""The database that tests get is new each time, and reachable by the URL that the settings take."""

from pathlib import Path

import pytest
from sqlalchemy import text

from config.database import create_engine, database_url


@pytest.mark.parametrize("_round", [1, 2])
async def test_each_test_has_an_empty_database(postgres_url: str, tmp_path: Path, _round: int) -> None:
    engine = create_engine(database_url(postgres_url, relative_to=tmp_path))

    async with engine.begin() as connection:
        tables = await connection.scalar(text("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"))
        await connection.execute(text("CREATE TABLE left_behind (id int)"))
    await engine.dispose()

    assert tables == 0
