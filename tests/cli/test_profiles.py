"""``--profile``, ODRADEK_PROFILE and ODRADEK_BOOTSTRAP: servers and credentials that nobody types."""

import pytest

from odradek.cli.profiles import profile_file


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write the profile file."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))

    def run(text):
        profile_file().parent.mkdir(exist_ok=True)
        profile_file().write_text(text)

    return run


@pytest.fixture
def two(broker_process, command):
    """The addresses of two brokers, of which each has a topic: one and two."""
    addresses = []
    for name in ("one", "two"):
        broker = broker_process()
        command("topics", "create", name, "-b", broker.address)
        addresses.append(broker.address)
    return addresses


def test_the_option_wins_over_the_environment_over_the_profile_over_the_default(command, write, two, monkeypatch):
    write(f'default = "a"\n[a]\nbootstrap = "{two[0]}"\n[b]\nbootstrap = "{two[1]}"\n')

    def asked(*arguments):
        status, out, err = command("topics", "list", *arguments)
        assert status == 0, err
        return out.split()[5]

    assert (asked(), asked("--profile", "b")) == ("one", "two")
    monkeypatch.setenv("ODRADEK_PROFILE", "b")
    assert (asked(), asked("--profile", "a")) == ("two", "one")
    monkeypatch.setenv("ODRADEK_BOOTSTRAP", two[0])
    assert (asked(), asked("-b", two[1])) == ("one", "two")


@pytest.mark.parametrize("in_file", [False, True])
def test_credentials_come_from_the_profile(command, write, broker_process, tmp_path, in_file):
    jaas = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    broker = broker_process(
        settings={
            "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{jaas} user_alice="pw";',
        }
    )
    login = f'{jaas} username="alice" password="pw";'
    if in_file:
        file = tmp_path / "client.properties"
        file.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={login}\n")
        configs = f"command-config = '{file}'"
    else:
        configs = f"security.protocol = 'SASL_PLAINTEXT'\nsasl.mechanism = 'PLAIN'\nsasl.jaas.config = '{login}'"
    write(f"[alice]\nbootstrap = '{broker.address}'\n{configs}\n")
    assert command("produce", "t", "a", "--profile", "alice")[0] == 0
    assert command("consume", "t", "--count", 1, "--profile", "alice") == (0, "a\n", "")
    assert command("topics", "describe", "t", "--profile", "alice")[0] == 0
    hint = "; if it wants TLS or a password, set security.protocol in the file of --command-config or in a --profile\n"
    for asked in (("topics", "list"), ("consume", "t")):
        status, _, err = command(*asked, "-b", broker.address)
        assert (status, err.endswith(hint)) == (2, True)


def test_a_profile_that_is_not_there_is_named_with_those_that_are(command, write):
    write('[a]\nbootstrap = "x:1"\n[b]\n')
    assert command("topics", "list", "--profile", "c") == (
        2,
        "",
        f"odradek: there is no profile c in {profile_file()}; profiles: a, b\n",
    )


def test_without_a_file_no_profile_is_there(command, write):
    status, _, err = command("topics", "list", "--profile", "c")
    assert (status, err) == (2, f"odradek: there is no profile c: {profile_file()} does not exist\n")


def test_a_file_that_is_not_toml_is_one_line(command, write):
    write("[a")
    status, _, err = command("topics", "list", "--profile", "a")
    assert (status, err.startswith(f"odradek: {profile_file()} cannot be read: "), err.count("\n")) == (2, True, 1)


def test_a_file_and_configs_do_not_go_together(command, write):
    write("[a]\ncommand-config = 'x'\nsasl.mechanism = 'PLAIN'\n")
    status, _, err = command("topics", "list", "--profile", "a")
    assert (status, "has a command-config, and sasl.mechanism beside it" in err) == (2, True)
