"""The file, the environment over it, and what is said where either cannot be used."""

from datetime import time, timedelta
from pathlib import Path

import pytest

from config.addresses import Address
from config.environment import known_variables
from config.errors import SettingsError
from config.loading import load_configuration
from config.settings import Settings
from reconciler.states import Kind

DESIGN_EXAMPLE = """
state_dir = "state"

[database]
url = "sqlite:///handbell.db"

[redis]
url = "redis://127.0.0.1:6379/0"

[web]
listen = "0.0.0.0:8321"
public_url = "https://handbell.example.com/"

[[sources]]
namespace = "prod"
type = "cayu"
store = "sqlite:////srv/agents/data/cayu.db"
sweep_every = "1h30m"

[channels.ops]
type = "slack"
token_file = "/run/secrets/slack"
fallback = ["mail"]

[channels.mail]
type = "email"
host = "smtp.example.com"
to = ["oncall@example.com"]

[operator]
notify = ["mail"]

[[routes]]
match = { kind = ["tool_approval"], agent = "billing-*", labels = { team = "pay" } }
notify = ["ops"]
continue = true
remind_every = "30m"
remind_at_most = 4
escalate = [{ after = "2h", notify = ["mail"] }]
quiet = { from = "22:00", to = "07:00", zone = "Europe/Berlin", except = ["manual_recovery"] }
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "handbell.toml"
    path.write_text(DESIGN_EXAMPLE)
    return path


def test_nothing_configured_means_embedded_servers_and_the_console(tmp_path: Path) -> None:
    loaded = load_configuration(environ={}, cwd=tmp_path)

    assert loaded.file is None
    assert loaded.state_dir == tmp_path / ".handbell"
    assert loaded.database_url.database == str(tmp_path / ".handbell" / "handbell.db")
    assert loaded.settings.redis.url is None
    assert [(name, channel.type) for name, channel in loaded.settings.channels.items()] == [("console", "console")]


def test_file_of_the_design_is_read(file: Path) -> None:
    loaded = load_configuration(file, environ={})

    route = loaded.settings.routes[0]
    source = loaded.settings.sources[0]
    assert loaded.settings.web.listen == Address("0.0.0.0", 8321)
    assert loaded.settings.web.public_url == "https://handbell.example.com"
    assert (source.sweep_every, source.head_every) == (timedelta(hours=1, minutes=30), timedelta(seconds=15))
    assert source.options == {"store": "sqlite:////srv/agents/data/cayu.db"}
    assert loaded.settings.channels["mail"].options == {"host": "smtp.example.com", "to": ["oncall@example.com"]}
    assert route.goes_on
    assert route.match.agent == ("billing-*",)
    assert route.match.labels == {"team": ("pay",)}
    assert route.quiet is not None
    assert (route.quiet.begins_at, route.quiet.ends_at) == (time(22), time(7))
    assert route.escalate[0].after == timedelta(hours=2)


def test_relative_paths_count_from_the_files_folder(file: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    loaded = load_configuration(Path("../handbell.toml"), environ={}, cwd=elsewhere)

    assert loaded.state_dir.resolve() == tmp_path / "state"
    assert loaded.database_url.database == str(tmp_path / "handbell.db")


@pytest.mark.parametrize("with_variable", [True, False])
def test_explicitly_named_file_that_is_missing_is_an_error(tmp_path: Path, with_variable: bool) -> None:
    named = None if with_variable else Path("gone.toml")
    environ = {"HANDBELL_CONFIG": "gone.toml"} if with_variable else {}

    with pytest.raises(SettingsError, match=r"gone\.toml does not exist: (HANDBELL_CONFIG|--config) names it"):
        load_configuration(named, environ=environ, cwd=tmp_path)


def test_file_is_found_by_option_then_variable_then_working_directory(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text('state_dir = "other"')
    environ = {"HANDBELL_CONFIG": str(other)}

    assert load_configuration(file, environ=environ, cwd=tmp_path).file == file
    assert load_configuration(environ=environ, cwd=tmp_path).file == other
    assert load_configuration(environ={}, cwd=tmp_path).file == file


def test_environment_overrides_the_file(file: Path) -> None:
    environ = {
        "HANDBELL_STATE_DIR": "/srv/state",
        "HANDBELL_WEB__LISTEN": "[::1]:9000",
        "HANDBELL_DELIVERY__ATTEMPT_LIMIT": "3",
        "HANDBELL_OPERATOR__NOTIFY": '["ops"]',
        "HANDBELL_SOURCES": '[{"namespace": "test", "type": "handoff", "tokens": ["t"]}]',
        "HANDBELL_CHANNELS__MAIL__PORT": "2525",
        "HANDBELL_CHANNELS__MAIL__TO": '["a@example.com", "b@example.com"]',
        "HANDBELL_CHANNELS__NIGHT": '{"type": "console"}',
        "UNRELATED": "kept out",
    }

    loaded = load_configuration(file, environ=environ)

    settings = loaded.settings
    assert loaded.state_dir == Path("/srv/state")
    assert settings.web.listen == Address("::1", 9000)
    assert settings.web.public_url == "https://handbell.example.com"
    assert settings.delivery.attempt_limit == 3
    assert settings.operator.notify == ("ops",)
    assert [source.namespace for source in settings.sources] == ["test"]
    assert settings.channels["mail"].options["port"] == "2525"
    assert settings.channels["mail"].options["to"] == ["a@example.com", "b@example.com"]
    assert settings.channels["mail"].options["host"] == "smtp.example.com"
    assert settings.channels["night"].type == "console"


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("HANDBELL_WEB__LISTNE", "x", "HANDBELL_WEB__LISTNE: unknown variable; did you mean HANDBELL_WEB__LISTEN?"),
        ("HANDBELL_STATEDIR", "x", "HANDBELL_STATEDIR: unknown variable; did you mean HANDBELL_STATE_DIR?"),
        ("HANDBELL_QQQ", "x", "HANDBELL_QQQ: unknown variable; unset it, or look the right one up in docs/settings.md"),
        ("HANDBELL_SOURCES__0__TYPE", "x", "HANDBELL_SOURCES__0__TYPE: a list comes as JSON, in HANDBELL_SOURCES"),
        ("HANDBELL_STATE_DIR__X", "x", "HANDBELL_STATE_DIR__X: unknown variable; did you mean HANDBELL_STATE_DIR?"),
        ("HANDBELL_WEB__", "x", "HANDBELL_WEB__: unknown variable; did you mean HANDBELL_WEB?"),
        (
            "HANDBELL_ROUTES",
            "ops",
            'HANDBELL_ROUTES: must be JSON, for instance ["a", "b"] (Expecting value, character 1)',
        ),
        (
            "HANDBELL_ROUTES",
            '[{"notify": ["opps"]}]',
            'HANDBELL_ROUTES: routes[0].notify: there is no [channels.opps]; did you mean "ops"?',
        ),
        (
            "HANDBELL_DELIVERY__LEASE",
            "60",
            'HANDBELL_DELIVERY__LEASE: delivery.lease: a duration is written like "30s", "5m", "1h30m" or "2d"',
        ),
        (
            "HANDBELL_REDIS__URL",
            "http://:hunter2@redis",
            "HANDBELL_REDIS__URL: redis.url: must be a redis://, rediss:// or unix:// URL",
        ),
        (
            "HANDBELL_DATABASE__URL",
            "mysql://me:hunter2@db/x",
            "HANDBELL_DATABASE__URL: [database] url names 'mysql': only sqlite:/// and postgresql:// can be used",
        ),
        (
            "HANDBELL_DATABASE__URL_FILE",
            "gone",
            "HANDBELL_DATABASE__URL_FILE: [database] url_file: FOLDER/gone cannot be read: No such file or directory",
        ),
    ],
)
def test_wrong_variable_is_named_in_one_line(file: Path, name: str, value: str, line: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load_configuration(file, environ={name: value})

    assert str(caught.value).replace(str(file.parent), "FOLDER") == line


def test_wrong_key_of_the_file_is_not_blamed_on_the_environment(file: Path) -> None:
    file.write_text('[web]\nlisten = "nowhere"\n')

    with pytest.raises(SettingsError, match=r"^[^ ]*handbell\.toml: web\.listen: "):
        load_configuration(file, environ={"HANDBELL_WEB__ADMIN_LISTEN": "127.0.0.1:1"})


@pytest.mark.parametrize(
    ("in_file", "variable", "value"),
    [
        ('url_file = "secret"', "HANDBELL_REDIS__URL", "redis://new:1"),
        ('url = "redis://old:1"', "HANDBELL_REDIS__URL_FILE", "secret"),
        ('url_file = "old"', "HANDBELL_REDIS__URL_FILE", "secret"),
    ],
)
def test_secret_of_the_environment_overrides_the_files_in_either_form(
    tmp_path: Path, in_file: str, variable: str, value: str
) -> None:
    (tmp_path / "secret").write_text("redis://new:1\n")
    (tmp_path / "handbell.toml").write_text(f"[redis]\n{in_file}\n")

    url = load_configuration(environ={variable: value}, cwd=tmp_path).settings.redis.url

    assert url is not None
    assert url.get_secret_value() == "redis://new:1"


def test_secret_given_twice_in_the_environment_is_an_error(tmp_path: Path) -> None:
    environ = {"HANDBELL_REDIS__URL": "redis://a:1", "HANDBELL_REDIS__URL_FILE": "secret"}

    with pytest.raises(SettingsError, match=r"^HANDBELL_REDIS__URL_FILE: \[redis\] url_file: url is set too"):
        load_configuration(environ=environ, cwd=tmp_path)


def test_channels_secret_file_in_the_file_gives_way_to_the_variable(file: Path) -> None:
    loaded = load_configuration(file, environ={"HANDBELL_CHANNELS__OPS__TOKEN": "12345"})

    assert loaded.settings.channels["ops"].options == {"token": "12345"}


def test_no_secret_is_shown_by_the_settings(tmp_path: Path) -> None:
    environ = {"HANDBELL_REDIS__URL": "redis://:hunter2@a:1", "HANDBELL_DATABASE__URL": "postgresql://u:hunter2@b/c"}

    loaded = load_configuration(environ=environ, cwd=tmp_path)

    assert "hunter2" not in f"{loaded!r} {loaded.settings} {loaded.database_url}"


def test_folder_in_place_of_the_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"cannot be read: Is a directory$"):
        load_configuration(tmp_path, environ={})


def test_file_that_is_not_utf8_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "handbell.toml").write_bytes(b'state_dir = "\xff"')

    with pytest.raises(SettingsError, match=r"is not UTF-8 text$"):
        load_configuration(environ={}, cwd=tmp_path)


def test_settings_change_no_more_after_loading(tmp_path: Path) -> None:
    settings = load_configuration(environ={}, cwd=tmp_path).settings

    with pytest.raises(ValueError, match="frozen"):
        settings.delivery.attempt_limit = 1  # type: ignore[misc]  # the point of the test


def test_routes_know_the_kinds_that_there_are() -> None:
    from config.route_settings import KINDS

    assert tuple(Kind) == KINDS


def test_every_closed_setting_has_a_variable() -> None:
    names = list(known_variables(Settings))

    assert {"HANDBELL_STATE_DIR", "HANDBELL_DATABASE__URL_FILE", "HANDBELL_LOG__LEVEL"} <= set(names)
    assert len(names) == len(set(names))
