"""What a release is made of: a compiled wheel for each Python that is served, tried before it is published, and no password."""

import re
import tomllib

import yaml

from tests.broker_process import REPOSITORY

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
WORKFLOW = REPOSITORY / ".github" / "workflows" / "release.yml"


def test_each_python_that_the_package_names_gets_a_compiled_wheel():
    named = [re.search(r":: 3\.(\d+)$", each) for each in PROJECT["project"]["classifiers"]]
    wheels = PROJECT["tool"]["cibuildwheel"]
    assert wheels["build"].split() == [f"cp3{found[1]}-*" for found in named if found]
    assert wheels["environment"]["ODRADEK_COMPILE"] == wheels["macos"]["environment"]["ODRADEK_COMPILE"] == "1"


def test_every_wheel_is_tried_as_the_build_that_it_is():
    assert PROJECT["tool"]["cibuildwheel"]["test-command"] == "python {project}/tools/try_wheel.py compiled"
    assert (REPOSITORY / "tools" / "try_wheel.py").exists()


def test_nothing_is_published_that_was_not_tried_and_by_trust_alone():
    text = WORKFLOW.read_text()
    jobs = yaml.safe_load(text)["jobs"]
    assert set(jobs["publish"]["needs"]) == jobs.keys() - {"publish"}
    assert {name: job["permissions"] for name, job in jobs.items() if "permissions" in job} == {"publish": {"id-token": "write"}}
    assert "secrets." not in text
