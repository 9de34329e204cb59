"""The process of a node: a fork of the supervisor, which has imported what a node needs.

So the modules are imported once, and their memory is shared. A node's process has a session of its own, so that Ctrl-C on the
terminal reaches the supervisor alone. It ends with the supervisor, whatever ends that: the supervisor has the one write end of a
pipe from which a thread of the node reads.
"""

import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from importlib import import_module

from odradek.broker import api as broker_handlers
from odradek.broker.api import controller as controller_handlers
from odradek.cli.local_cluster.node import Child
from odradek.cli.local_cluster.plan import NodePlan
from odradek.cli.serve import run
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.request_encoder import request_encoder
from odradek.protocol.requests import request_decoder
from odradek.protocol.response_decoder import response_decoder
from odradek.protocol.responses import response_encoder

_FAILED = 1
# What a node imports when it first needs it, which a node of a cluster does in its first second.
_SOON_NEEDED = ("encodings.idna", "odradek.broker.start.cluster_start", "odradek.cli.serve_controller", "uvloop")
# What nodes ask the controller and each other in that second, and what the first client asks a broker.
_OF_CONTROLLERS = (
    *(ApiKey.API_VERSIONS, ApiKey.DESCRIBE_CLUSTER, ApiKey.BROKER_REGISTRATION, ApiKey.BROKER_HEARTBEAT, ApiKey.FETCH),
    *(ApiKey.ALLOCATE_PRODUCER_IDS, ApiKey.ENVELOPE, ApiKey.CREATE_TOPICS),
)
_OF_BROKERS = (ApiKey.API_VERSIONS, ApiKey.METADATA, ApiKey.CREATE_TOPICS, ApiKey.PRODUCE, ApiKey.FETCH)


def import_all() -> None:
    """Import what nodes need, and keep the garbage collector from writing to what they share."""
    for name in _SOON_NEEDED:
        import_module(name)
    for api_key in _OF_CONTROLLERS:
        import_module(controller_handlers.module_of(api_key))
        version = controller_handlers.SERVED[api_key].max_version
        for codec in (request_encoder, request_decoder, response_encoder, response_decoder):
            codec(api_key, version)
    for api_key in _OF_BROKERS:
        broker_handlers.load_handler(api_key)
        request_decoder(api_key, broker_handlers.SERVED[api_key].max_version)
        response_encoder(api_key, broker_handlers.SERVED[api_key].max_version)
    gc.collect()
    gc.freeze()


class Forks:
    """Makes the processes of nodes. ``signals`` are those that the supervisor handles."""

    def __init__(self, signals: Sequence[signal.Signals]) -> None:
        self._signals = signals
        self._lifeline_read, self._lifeline_write = os.pipe()
        # Called in each child: closes the supervisor's files.
        self.on_fork: Callable[[], object] = lambda: None

    def launch(self, plan: NodePlan) -> Child:
        """Fork."""
        plan.directory.parent.mkdir(parents=True, exist_ok=True)
        read_end, write_end = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        # Between the fork and its own handlers a child would take the supervisor's, and lose a signal.
        signal.pthread_sigmask(signal.SIG_BLOCK, self._signals)
        try:
            pid = os.fork()
            if not pid:
                os.close(read_end)
                self._become(plan, write_end)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, self._signals)
        os.close(write_end)
        return Child(pid, read_end)

    def _become(self, plan: NodePlan, stdout: int) -> None:
        """Be the node, and end with it."""
        status = _FAILED
        try:
            os.setsid()
            os.close(self._lifeline_write)
            self.on_fork()
            _redirect(plan, stdout)
            for number in self._signals:
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, self._signals)
            threading.Thread(target=_end_with_parent, args=(self._lifeline_read,), daemon=True).start()
            status = run(host=None, port=None, data_dir=plan.directory, config_file=None, settings=plan.settings)
            sys.stdout.flush()
        except BaseException:  # noqa: BLE001  the process ends here, whatever it was
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stderr.flush()
            # Without what is to be done at the supervisor's exit.
            os._exit(status)


def _redirect(plan: NodePlan, stdout: int) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    log = os.open(plan.log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for number, target in ((nothing, 0), (stdout, 1), (log, 2)):
        os.dup2(number, target)
        os.close(number)


def _end_with_parent(lifeline: int) -> None:
    # Nothing is ever written: this is the end of the last process that could.
    os.read(lifeline, 1)
    os.kill(os.getpid(), signal.SIGKILL)
