"""Apache Kafka's command-line tools, in one JVM for the whole process: a start takes a second, and most tools less.

The JVM begins with the first tool. A tool that does not end in time is killed with it, and the next tool has a new one.
"""

import atexit
import subprocess
import threading
from base64 import b64decode, b64encode
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.campaigns.kafka_tools.java_program import compiled

_SOURCE = Path(__file__).with_name("KafkaTools.java")
_TIMEOUT_S = 60.0


class _Tools:
    """The JVM, if it runs. Tools of several threads wait for each other."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._opened = ExitStack()
        self._lock = threading.Lock()

    def run(self, words: list[str]) -> subprocess.CompletedProcess[str]:
        with self._lock:
            process = self._process or self._start()
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(" ".join(map(_encoded, words)) + "\n")
            process.stdin.flush()
            limit = threading.Timer(_TIMEOUT_S, process.kill)
            limit.start()
            answer = process.stdout.readline()
            limit.cancel()
            if not answer:
                self._end()
                raise subprocess.TimeoutExpired(words, _TIMEOUT_S)
        status, out, err = answer.removesuffix("\n").split(" ")
        return subprocess.CompletedProcess(words, int(status), _decoded(out), _decoded(err))

    def _start(self) -> subprocess.Popen[str]:
        with ExitStack() as stack:
            scratch = stack.enter_context(TemporaryDirectory(prefix="odradek-kafka-tools-"))
            command = compiled(_SOURCE, Path(scratch), log_level="warn")
            process = stack.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
            self._opened, self._process = stack.pop_all(), process
        atexit.register(self._end)
        return process

    def _end(self) -> None:
        """Close the JVM's standard input, at which it ends, and wait for that."""
        atexit.unregister(self._end)
        self._process = None
        self._opened.close()


_tools = _Tools()


def run_tool(name: str, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    """Run the tool of this class, with ``given`` on its standard input. Raises TimeoutExpired, and MissingTool without a JDK."""
    return _tools.run([name, given, *arguments])


def list_topics(address: str, properties: Path) -> subprocess.CompletedProcess[str]:
    """List the topics, as a client with this file."""
    arguments = ["--bootstrap-server", address, "--list", "--command-config", str(properties)]
    return run_tool("org.apache.kafka.tools.TopicCommand", *arguments)


def _encoded(word: str) -> str:
    return b64encode(word.encode()).decode()


def _decoded(word: str) -> str:
    return b64decode(word).decode()
