#!/usr/bin/env bash
# Makes the virtual environment and installs odradek into it, with the extras named.
#
#   tools/bootstrap.sh VENV [EXTRAS] [--optional] [--install-missing]
#
# EXTRAS is a comma-separated list of extras of pyproject.toml. Python with its venv module that is missing is named with the command
# that installs it. With --install-missing, and where the user is root on a Debian-like system, that command is run instead. With
# --optional a JDK, Chromium and debootstrap are installed there, too; elsewhere the tests that need them are skipped, and say so.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=$1
shift
extras=""
optional=no
install_missing=no
for argument in "$@"; do
    case "$argument" in
        --optional) optional=yes ;;
        --install-missing) install_missing=yes ;;
        *) extras=$argument ;;
    esac
done

# Debian's way to install PACKAGES, run or named; the caller then looks again.
provide() {
    local what=$1
    shift
    local command="apt-get install -y --no-install-recommends $*"
    if [ "$install_missing" = yes ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "$what is missing; installing it: $command" >&2
        apt-get update -q >&2
        # shellcheck disable=SC2086  # several words on purpose
        DEBIAN_FRONTEND=noninteractive $command >&2
        return
    fi
    echo "error: $what is missing." >&2
    echo "On Debian or Ubuntu install it with:  sudo $command" >&2
    echo "Elsewhere use your system's package manager, then run make again." >&2
    exit 1
}

# Python: $PYTHON if set, else the first on the path that is new enough.
new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }
find_python() {
    local candidate
    for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11 python}; do
        if new_enough "$candidate"; then
            command -v "$candidate"
            return
        fi
    done
    return 1
}

if [ ! -x "$venv/bin/python" ] || ! new_enough "$venv/bin/python"; then
    python=$(find_python) || { provide "Python 3.11 or newer" python3 python3-venv; python=$(find_python); } || {
        echo "error: the system's own Python is older than 3.11; set PYTHON=/path/to/a/newer/python and run make again." >&2
        exit 1
    }
    if ! "$python" -c 'import ensurepip, venv' >/dev/null 2>&1; then
        version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
        provide "Python's venv module" "python$version-venv"
    fi
    rm -rf "$venv"
    "$python" -m venv "$venv"
fi

java_new_enough() {
    local java_command=java major
    if [ -n "${JAVA_HOME:-}" ]; then java_command=$JAVA_HOME/bin/java; fi
    major=$("$java_command" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -n 1)
    [ "${major:-0}" -ge 17 ]
}
jdk() { java_new_enough && command -v "${JAVA_HOME:+$JAVA_HOME/bin/}javac" >/dev/null; }

if [ "$optional$install_missing" = yesyes ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    jdk || provide "A JDK, 17 or newer," default-jdk-headless \
        || echo "There is no JDK to be had: the tests of Spark, of the pipeline and beside Apache Kafka will be skipped." >&2
    command -v chromium chromium-browser google-chrome >/dev/null || provide "Chromium" chromium \
        || echo "There is no Chromium to be had: the tests that open the report will be skipped." >&2
    command -v debootstrap >/dev/null || provide "debootstrap" debootstrap \
        || echo "There is no debootstrap to be had: the test that runs the Dockerfile's steps will be skipped." >&2
fi

"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --editable ".${extras:+[$extras]}"
# What an ordinary installation has, and an editable one only after its first run: half of the start-up would go into compiling.
"$venv/bin/python" -m compileall -q odradek
