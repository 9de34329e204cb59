"""The process of a node: a fork of the supervisor, which has imported the modules that a node needs.

So the modules are imported once, and their memory is shared. A node's process has its own session, so Ctrl-C on the terminal
reaches the supervisor only. The node ends with the supervisor, however that ends: a thread of the node reads from a pipe whose
only write end is the supervisor's.
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
from odradek.cli.local_cluster.node import Child, NodePlan
from odradek.cli.serve import run
from odradek.cli.serve_options import ServeOptions
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.broker_codecs import request_decoder, response_encoder
from odradek.protocol.client_codecs import request_encoder, response_decoder

_FAILED = 1
# Modules that a node imports late: for its start, and for the first group and the first transaction.
_SOON_NEEDED = (
    *("encodings.idna", "odradek.broker.start.cluster_start", "odradek.cli.serve_controller", "uvloop"),
    *("odradek.broker.coordination.group_shards", "odradek.broker.coordination.transaction_shards"),
)
# Requests of nodes to the controller and each other in that second, and of the first client to a broker.
_OF_CONTROLLERS = (
    *(ApiKey.API_VERSIONS, ApiKey.DESCRIBE_CLUSTER, ApiKey.BROKER_REGISTRATION, ApiKey.BROKER_HEARTBEAT, ApiKey.FETCH),
    *(ApiKey.ALLOCATE_PRODUCER_IDS, ApiKey.ENVELOPE, ApiKey.CREATE_TOPICS),
)
_OF_BROKERS = (ApiKey.API_VERSIONS, ApiKey.METADATA, ApiKey.CREATE_TOPICS, ApiKey.PRODUCE, ApiKey.FETCH)


def import_all() -> None:
    """Import the modules of nodes, and keep the garbage collector from writing to the shared memory."""
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
        """Fork the process of a node."""
        plan.directory.parent.mkdir(0o700, parents=True, exist_ok=True)
        read_end, write_end = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        # Otherwise a signal right after the fork would reach the supervisor's handler in the child, and be lost.
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
        """Run the node, and exit with it."""
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
            status = run(ServeOptions(data_dir=plan.directory, settings=plan.settings))
            sys.stdout.flush()
        except BaseException:  # noqa: BLE001  the process ends here, whatever the error was
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stderr.flush()
            # Skip the supervisor's exit handlers.
            os._exit(status)


def _redirect(plan: NodePlan, stdout: int) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    log = os.open(plan.log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for number, target in ((nothing, 0), (stdout, 1), (log, 2)):
        os.dup2(number, target)
        os.close(number)


def _end_with_parent(lifeline: int) -> None:
    # Nothing is ever written: this returns when the supervisor, the only writer, has ended.
    os.read(lifeline, 1)
    os.kill(os.getpid(), signal.SIGKILL)
