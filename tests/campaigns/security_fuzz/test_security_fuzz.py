"""The fuzzer of what lets clients in, for a few seconds; the campaign security-fuzz runs it for longer."""

import re
from types import SimpleNamespace

import pytest

from odradek.broker.network.tls_connection import TlsConnection
from odradek.broker.security.sasl.authenticator import Authenticated, Authenticator
from odradek.broker.security.sasl.mechanism import PlainServer
from tests.campaigns.fuzz.socket_fuzz import WorkingClient
from tests.campaigns.security_fuzz import __main__ as program
from tests.campaigns.security_fuzz import at_doors, in_process
from tests.campaigns.security_fuzz.in_process import Failure


def test_a_broker_and_its_clients_are_unharmed_by_what_asks_to_be_let_in(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["", "--sasl=20000", "--tls=300", "--live=400", "--half-open=600", "--seed=7"])
    assert program.main() == 0, capsys.readouterr().err
    assert "20700 frames and records, seed 7, failures 0" in capsys.readouterr().out


def test_a_harmed_client_fails_the_run_and_the_seed_is_told(capsys, monkeypatch):
    monkeypatch.setattr(WorkingClient, "_work", lambda client: client._fetch(10**9))
    monkeypatch.setattr("sys.argv", ["", "--sasl=0", "--tls=0", "--live=4", "--half-open=1", "--seed=7"])
    assert program.main() == 1
    told = capsys.readouterr().err
    assert re.search(r"(PLAINTEXT|SASL_SSL): AssertionError", told)
    assert "again with --seed 7" in told


@pytest.mark.interpreted
def test_an_exception_of_a_mechanism_is_found(monkeypatch):
    monkeypatch.setattr(PlainServer, "evaluate", lambda server, token: {}[token])
    with pytest.raises(Failure, match="SASL frames 0 and on: KeyError"):
        in_process.sasl_frames(7, 1_000)


@pytest.mark.interpreted
def test_somebody_who_is_let_in_is_found(monkeypatch):
    monkeypatch.setattr(Authenticator, "receive", lambda *_: Authenticated([], "alice"))
    with pytest.raises(Failure, match="let somebody in"):
        in_process.sasl_frames(7, 1)


@pytest.mark.interpreted
def test_an_exception_of_a_connections_end_is_found(monkeypatch):
    monkeypatch.setattr(TlsConnection, "_fail", lambda end, cause: {}[cause])
    with pytest.raises(Failure, match=r"TLS record \d+: KeyError"):
        in_process.tls_records(7, 30)


def test_growth_is_found(monkeypatch):
    monkeypatch.setattr(in_process, "_MAX_GROWTH_KIB", -1)
    with pytest.raises(Failure, match="memory grew by"):
        in_process.sasl_frames(7, 1)
    monkeypatch.setattr(at_doors, "memory_kib", lambda pid: 1 << 20)
    with pytest.raises(Failure, match="1048576 KiB after"):
        at_doors.check_memory(SimpleNamespace(broker=SimpleNamespace(pid=1)), 1 << 19)


@pytest.mark.parametrize("line", ["Traceback (most recent call last):", '"event": "a request failed"'])
def test_an_exception_in_the_log_is_found(line):
    with pytest.raises(Failure, match="unhandled exceptions 1"):
        at_doors.check_log(SimpleNamespace(broker=SimpleNamespace(stderr=f"ready\n{line}")))


@pytest.mark.parametrize("place", ["the log", "the metrics", "what it is configured to"])
def test_a_secret_is_found_where_it_is_told(monkeypatch, place):
    texts = dict.fromkeys(["the log", "the metrics", "what it is configured to"], "nothing") | {place: "password=secret1"}
    monkeypatch.setattr(at_doors, "metrics", lambda at: texts["the metrics"])
    monkeypatch.setattr(at_doors, "described_configs", lambda at: texts["what it is configured to"])
    at = SimpleNamespace(broker=SimpleNamespace(stderr=texts["the log"]), secrets=lambda: ["secret0", "secret1"])
    with pytest.raises(Failure, match=f"{place} has the secret 'secret1'"):
        at_doors.check_secrets(at)
