"""A broker of ``serve --secure``, and what it says that clients need."""

from pathlib import Path

from odradek.properties import parse_properties
from tests.broker_process import BrokerProcess

JAVA = "# Java"
# By what each part begins with.
PARTS = ("# kafka-python", "# aiokafka", "# librdkafka", "# Spark", JAVA)


def printed_by(stdout):
    """All that follows the line that the broker is ready; nothing where it ends before."""
    lines = []
    while not (lines and lines[-1].startswith(JAVA)):
        lines.append(stdout.readline())
        if not lines[-1]:
            return ""
    lines.append(stdout.readline())
    # An empty one ends it.
    assert stdout.readline() == "\n"
    return "".join(lines)


def part_of(printed, name):
    """The lines below a heading."""
    [found] = [part for part in printed.split("\n\n") if part.startswith(name)]
    return found.strip().partition("\n")[2]


def python_of(printed, name):
    """The configs that the Python of a part makes."""
    namespace = {}
    exec(part_of(printed, name), namespace)
    return namespace["kafka"]


class SecureBroker(BrokerProcess):
    """``printed`` is what follows the line that it is ready."""

    printed = ""

    def __init__(self, data_dir, *, settings=None, arguments=()):
        super().__init__(data_dir, settings=settings, arguments=("--secure", *arguments))

    def start(self):
        super().start()
        self.printed = printed_by(self._running().stdout)
        assert self.printed, self.stderr
        return self

    def part(self, name):
        """The lines below a heading."""
        return part_of(self.printed, name)

    def python(self, name):
        """The configs that the Python of a part makes."""
        return python_of(self.printed, name)

    @property
    def properties_path(self):
        """The file that the part for Java names."""
        return self.part(JAVA)

    @property
    def properties(self):
        return parse_properties(Path(self.properties_path).read_text())

    @property
    def secrets(self):
        """What nobody is to find elsewhere."""
        names = ("secure-password", "secure-http-token", "secure-metrics-token")
        keys = [line for name in ("secure-ca.key", "secure-broker.pem") for line in self._file(name).splitlines()[-3:-1]]
        return [text for text in (*map(self._file, names), *keys) if text]

    def _file(self, name):
        path = self.data_dir / name
        return path.read_text() if path.exists() else ""
