"""The table of campaigns holds all there are, each with a short form, and its front door opens each."""

import os
import runpy
import sys
from collections import Counter

import pytest

from tests.broker_process import REPOSITORY
from tests.campaigns.__main__ import ALL_SHORT, main
from tests.campaigns.table import CAMPAIGNS, SHORT_TESTS
from tests.cases import each_case
from tests.project.documents import table

HERE = REPOSITORY / "tests" / "campaigns"
MEASURES_ONLY = {"pipeline-bench"}


def test_every_directory_is_some_campaigns():
    directories = {path.name for path in HERE.iterdir() if (path / "__init__.py").exists()}
    listed = {campaign.module.split(".")[2] for campaign in CAMPAIGNS.values() if campaign.module.startswith("tests.campaigns.")}
    assert listed == directories


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_a_campaign_is_a_program_that_says_what_its_arguments_are(name, monkeypatch, capsys):
    def become(_program, command):
        assert command[:2] == [sys.executable, "-m"]
        monkeypatch.setattr(sys, "argv", ["", *command[3:]])
        for module in (command[2], f"{command[2]}.__main__"):
            # Other tests may have imported what is run, of which Python warns.
            if not hasattr(sys.modules.get(module), "__path__"):
                monkeypatch.delitem(sys.modules, module, raising=False)
        runpy.run_module(command[2], run_name="__main__", alter_sys=False)

    monkeypatch.setattr(os, "execv", become)
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("usage: ")


@each_case("name", CAMPAIGNS.keys() - MEASURES_ONLY)
def test_a_campaign_has_a_short_form(name):
    short = CAMPAIGNS[name].short
    assert short
    assert [test for test in short if not (REPOSITORY / test).exists()] == []


def test_every_test_among_the_campaigns_is_some_campaigns_short_form():
    tests = [path.relative_to(REPOSITORY).as_posix() for path in HERE.rglob("*/test_*.py")]
    listed = Counter(SHORT_TESTS)
    assert {test: listed[test] for test in tests} == dict.fromkeys(tests, 1)


def test_the_map_of_the_tests_lists_the_campaigns():
    rows = table(REPOSITORY / "tests" / "README.md", "campaign", "what it does", "short form")
    assert [row["campaign"].strip("`") for row in rows] == [*CAMPAIGNS]
    assert all(campaign.what for campaign in CAMPAIGNS.values())


def test_without_a_name_all_are_listed(capsys):
    assert main([]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()[2:]]
    assert listed == [*CAMPAIGNS, ALL_SHORT]


def test_an_unknown_name_is_told_with_the_list(capsys):
    assert main(["soap"]) == 2
    told = capsys.readouterr().err
    assert "no campaign 'soap'" in told
    assert "  soak " in told


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (["soak", "--minutes", "60"], ["-m", "tests.campaigns.soak", "--minutes", "5", "--minutes", "60"]),
        (["all-short", "-x"], ["-m", "pytest", "--import-mode=append", "-n", "3", "--dist", "loadgroup", *SHORT_TESTS, "-x"]),
    ],
)
def test_arguments_follow_the_defaults(monkeypatch, arguments, command):
    became = []
    monkeypatch.setattr(os, "execv", lambda program, words: became.append((program, words)))
    main(arguments)
    assert became == [(sys.executable, [sys.executable, *command])]
