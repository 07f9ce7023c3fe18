"""The GPU as a device: what goes over the bus comes back, and a second picture is not prepared again."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from problems import random_image

import edgeconv
from edgeconv.hardware.devices import get_device
from edgeconv.methods import method_names

pytestmark = pytest.mark.gpu

BUS_SIZES = (1, 1000, 2 * 2**20, 2 * 2**20 + 1, 5_000_003, 50_331_648)


@pytest.mark.parametrize("page_locked", [False, True])
def test_bytes_survive_both_ways(page_locked: bool) -> None:
    device = get_device("cuda")
    make = device.host_empty if page_locked else np.empty
    for nbytes in BUS_SIZES:
        there, back = make((nbytes,), np.uint8), make((nbytes,), np.uint8)
        there[:] = np.random.default_rng(nbytes).integers(0, 255, nbytes, dtype=np.uint8)
        back[:] = 0
        array = device.empty((nbytes,), np.uint8)
        for _ in range(3):
            there[:] = np.roll(there, 1)
            device.copy_in(there, array)
            device.copy_out(array, back)
            assert np.array_equal(there, back), f"{nbytes:,} bytes"


def test_the_source_may_change_as_soon_as_copy_in_returns() -> None:
    device = get_device("cuda")
    picture = random_image(2048, 2048, "uint8")
    kept, array, back = picture.copy(), device.empty(picture.shape, picture.dtype), np.empty_like(picture)
    device.copy_in(picture, array)
    picture[:] = 0
    device.copy_out(array, back)
    assert np.array_equal(back, kept)


@pytest.mark.parametrize("method", method_names("cuda"))
def test_the_second_picture_of_a_shape_allocates_nothing_on_the_gpu(method: str) -> None:
    import cupy

    gc.collect()
    pool = cupy.get_default_memory_pool()
    pool.free_all_blocks()  # what other tests freed would be taken before new memory is
    picture = random_image(700, 500, "uint8")
    edgeconv.convolve(picture, "sobel", method, device="cuda")
    held = pool.total_bytes()
    for seed in range(3):
        edgeconv.convolve(random_image(700, 500, "uint8", seed), "sobel", method, device="cuda")
    assert pool.total_bytes() == held


def test_what_a_thread_keeps_is_of_one_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    import cupy

    device = type(get_device("cuda"))()
    assert device._staging() is device._staging()
    kept = [device._staging(), device.own_stream()]
    with monkeypatch.context() as patched:
        patched.setattr(cupy.cuda.runtime, "getDevice", lambda: 1)
        others = [device._staging(), device.own_stream()]
    assert not {id(each) for each in kept} & {id(other) for other in others}
    assert [device._staging(), device.own_stream()] == kept
    device._flush()
    with monkeypatch.context() as patched:
        patched.setattr(cupy.cuda.runtime, "getDevice", lambda: 1)
        device._flush()
    assert list(device._flushes) == [0, 1]
