"""Frames that no client sends, to the state machine with every mechanism: none is a fault of the broker's."""

from random import Random

import pytest

from odradek.broker.sasl.authenticator import Break, Refuse, TellVersions

from .odd_frames import enabled, talk


@pytest.mark.parametrize("seed", range(4))
def test_odd_frames_are_answered_refused_or_end_it_and_let_nobody_in(seed):
    assert {Refuse, Break, TellVersions} < talk(enabled(), Random(seed), 1_500).keys()
