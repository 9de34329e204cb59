"""What a release is made of: a compiled wheel for each Python that is served, tried before it is published, and no password."""

import re
import subprocess
import sys
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


def test_a_releases_readme_has_absolute_links_only(tmp_path):
    for name in ("README.md", "pyproject.toml"):
        (tmp_path / name).write_text((REPOSITORY / name).read_text())
    tool = REPOSITORY / "tools" / "release_links.py"
    subprocess.run([sys.executable, str(tool), "https://host.example/us/odradek", "v9.9.9"], cwd=tmp_path, check=True, timeout=30)
    readme = (tmp_path / "README.md").read_text()
    assert re.findall(r"\]\((?!https:)[^)]*\)", readme) == []
    assert "](https://host.example/us/odradek/blob/v9.9.9/README.md#state)" in readme
    assert "](https://host.example/us/odradek/raw/v9.9.9/docs/terminal.svg)" in readme
    assert "](https://host.example/us/odradek/blob/v9.9.9/docs/testing.md#faults)" in readme
    urls = tomllib.loads((tmp_path / "pyproject.toml").read_text())["project"]["urls"]
    assert urls["Changelog"] == "https://host.example/us/odradek/blob/v9.9.9/CHANGELOG.md"


def test_links_are_made_absolute_before_anything_is_built():
    jobs = yaml.safe_load(WORKFLOW.read_text())["jobs"]
    for name in jobs.keys() - {"publish"}:
        commands = [step["run"] for step in jobs[name]["steps"] if "run" in step]
        [links] = [place for place, command in enumerate(commands) if "tools/release_links.py" in command]
        builds = [place for place, command in enumerate(commands) if re.search("-m cibuildwheel|make test-wheel", command)]
        assert links < min(builds), name
