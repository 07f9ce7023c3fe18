"""Peers of canny as far as they are installed: how near their edges come, and what they refuse with a reason."""

from __future__ import annotations

import ctypes

import cv2
import numpy as np
import pytest
from canny_pictures import picture_of

from edgeconv.bench.peers.canny import (
    CANNY_PEERS,
    LARGEST_SHORT,
    CannyPeer,
    canny_peers,
    share_elsewhere,
)
from edgeconv.bench.peers.nvidia import NPP_FUNCTIONS
from edgeconv.core.canny import CannySettings, canny
from edgeconv.core.choices import DEVICES
from edgeconv.errors import UnavailableError

NEAR = {"opencv": 0.0, "kornia-rs": 0.0, "skimage": 0.02, "kornia": 0.2, "npp": 0.02, "cucim": 0.02}
"""Share of the edge pixels of a simple picture that may lie elsewhere."""


@pytest.mark.parametrize("peer", CANNY_PEERS, ids=lambda peer: f"{peer.name}-{peer.device}")
def test_a_peer_finds_about_the_same_edges(peer: CannyPeer) -> None:
    if reason := peer.unavailable_reason():
        pytest.skip(reason)
    y, x = np.mgrid[:200, :300]
    picture = (np.sin(y / 19) * np.cos(x / 23) * 110 + 128).astype(np.uint8)
    picture = cv2.GaussianBlur(np.where(picture > 128, np.uint8(220), np.uint8(30)), (5, 5), 0)
    settings = CannySettings(60, 200, l2=True)
    run, edges = peer.prepare(picture, settings)
    run()
    expected, found = canny(picture, settings), edges()
    assert (found.shape, found.dtype, set(np.unique(found))) == (expected.shape, np.uint8, {0, 255})
    assert share_elsewhere(expected, found) <= NEAR[peer.name]
    assert share_elsewhere(expected, np.roll(found, 20, axis=0)) > 0.2, "the edges of another picture are elsewhere"
    if peer.differs is None:
        np.testing.assert_array_equal(found, expected)
    assert (peer.differs is None) == (NEAR[peer.name] == 0)


@pytest.mark.parametrize("peer", CANNY_PEERS[1:], ids=lambda peer: f"{peer.name}-{peer.device}")
def test_what_a_peer_has_not_is_left_out_with_the_reason(peer: CannyPeer) -> None:
    grey, colour = picture_of("noise", (8, 9), 1), picture_of("noise", (8, 9, 3), 1)
    with pytest.raises(UnavailableError, match="grey pictures"):
        peer.prepare(colour, CannySettings(1, 2, l2=True))
    with pytest.raises(UnavailableError, match="no binomial smoothing"):
        peer.prepare(grey, CannySettings(1, 2, l2=True, blur=3))
    if not peer.has_l1:
        with pytest.raises(UnavailableError, match="alone"):
            peer.prepare(grey, CannySettings(1, 2))
    if peer.name == "npp":
        with pytest.raises(UnavailableError, match="whole numbers up to 32,767"):
            peer.prepare(grey, CannySettings(1.5, LARGEST_SHORT + 1))


def test_what_is_not_here_says_why() -> None:
    for device in DEVICES:
        here, left_out = canny_peers(device)
        names = {peer.name for peer in here} | left_out.keys()
        assert names == {peer.name for peer in CANNY_PEERS if peer.device == device}
        assert all(left_out.values())
        assert not any(peer.unavailable_reason() for peer in here)


def test_npp_is_called_with_fifteen_arguments() -> None:
    """As nppi_filtering_functions.h has it: thresholds are Npp16s, and the buffer comes before the context."""
    types = NPP_FUNCTIONS["nppiFilterCannyBorder_8u_C1R_Ctx"]
    assert len(types) == 15
    assert [place for place, kind in enumerate(types) if kind is ctypes.c_short] == [9, 10]
    assert types[13] is ctypes.c_void_p
