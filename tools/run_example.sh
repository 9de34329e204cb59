#!/usr/bin/env bash
# Builds the wheel, installs it and the example in examples/pytest-suite in a fresh environment, and runs the example's tests there.
# Nothing of this repository is on the path then. PYTHON names another Python than python3.
set -euo pipefail
cd "$(dirname "$0")/.."
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
unset PYTHONPATH
"${PYTHON:-python3}" -m venv "$place/venv"
pip=("$place/venv/bin/python" -m pip --quiet --disable-pip-version-check)
"${pip[@]}" wheel --no-deps --wheel-dir "$place" .
cp -r examples/pytest-suite "$place/suite"
"${pip[@]}" install "$place"/odradek-*.whl "$place/suite[test]"
cd "$place/suite"
"$place/venv/bin/odradek" --version
"$place/venv/bin/python" -m pytest -q "$@"
"$place/venv/bin/python" -m pytest -q -n 2 --kafka-shared "$@"
