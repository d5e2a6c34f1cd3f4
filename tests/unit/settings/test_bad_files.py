"""Every file of the corpus is refused in exactly the line that its first line states."""

from pathlib import Path

import pytest

from config.errors import SettingsError
from config.loading import load_configuration

BAD = Path(__file__).parent / "bad"
SAYS = "# says: "


@pytest.mark.parametrize("file", sorted(BAD.glob("*.toml")), ids=lambda file: file.stem)
def test_bad_file_is_refused_in_one_line(file: Path) -> None:
    expected = file.read_text().splitlines()[0].removeprefix(SAYS)

    with pytest.raises(SettingsError) as caught:
        load_configuration(file, environ={})

    assert str(caught.value).replace(f"{BAD}/", "") == expected
    assert "hunter2" not in repr(caught.value)
