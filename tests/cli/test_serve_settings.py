"""Where the flags of ``serve`` go among the settings."""

from pathlib import Path

import platformdirs
import pytest

from odradek.cli.serve import place_data, place_listener, ready_line
from tests.cases import each_case


@each_case(
    ("host", "port", "settings", "listeners"),
    [
        ("0.0.0.0", 9093, {}, "PLAINTEXT://0.0.0.0:9093"),
        (None, 0, {}, "PLAINTEXT://127.0.0.1:0"),
        ("::1", None, {}, "PLAINTEXT://[::1]:9092"),
        (None, 7, {"listeners": "PLAINTEXT://:9092"}, "PLAINTEXT://:7"),
        (None, 7, {"listeners": "PLAINTEXT://[::]:9092"}, "PLAINTEXT://[::]:7"),
        ("a", 7, {"listeners": "HOST://h:1, INTERNAL://i:2"}, "HOST://a:7,INTERNAL://i:2"),
        (None, 7, {"listeners": "C://:1,P://:2", "controller.listener.names": "c"}, "C://:1,P://:7"),
        (None, 7, {"listeners": "C://:1", "controller.listener.names": "c", "process.roles": "controller"}, "C://:7"),
    ],
)
def test_host_and_port_replace_those_of_the_first_listener_that_is_opened(host, port, settings, listeners):
    settings = dict(settings)
    place_listener(settings, host, port)
    assert settings["listeners"] == listeners


def test_without_host_and_port_the_listeners_stay_as_they_are():
    settings: dict[str, str] = {}
    place_listener(settings, None, None)
    assert settings == {}


def test_what_is_not_a_listener_is_left_for_the_config_to_refuse():
    settings = {"listeners": "nonsense"}
    place_listener(settings, None, 7)
    assert settings == {"listeners": "nonsense"}


def test_the_data_dir_flag_weighs_more_than_the_config():
    settings = {"log.dirs": "/elsewhere"}
    assert place_data(settings, Path("/here")) is None
    assert settings["log.dirs"] == "/here"


@pytest.mark.parametrize("key", ["log.dirs", "log.dir"])
def test_a_configured_data_directory_is_used(key):
    settings = {key: "/elsewhere"}
    assert place_data(settings, None) is None
    assert settings == {key: "/elsewhere"}


def test_without_any_data_directory_it_is_the_users_data_folder():
    settings: dict[str, str] = {}
    folder = place_data(settings, None)
    assert folder == settings["log.dirs"] == platformdirs.user_data_dir("odradek", appauthor=False)


@each_case(
    ("host", "told"), [("127.0.0.1", "127.0.0.1:9092"), ("::1", "[::1]:9092"), ("", "localhost:9092"), ("broker", "broker:9092")]
)
def test_the_ready_line_names_an_address_that_can_be_connected_to(host, told):
    assert ready_line(host, 9092) == f"odradek ready on {told}"
