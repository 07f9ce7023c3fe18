"""Libraries that are missing, or there and broken: one reason and one remedy, wherever they are asked for."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from picture_files import noisy, saved

from edgeconv.api import doctor
from edgeconv.batch.engines.cluster_worker import maker_here
from edgeconv.bench.peers import PEERS
from edgeconv.core.optional import import_problem
from edgeconv.errors import UnavailableError
from edgeconv.run import sources

NO_LIBRARY = "cannot load library 'libvips.so.42': no such file"
FAILURES = {
    "library": f"raise OSError({NO_LIBRARY!r})",
    "wheel": "raise ImportError('undefined symbol: png_malloc')",
    "start-up": "raise Exception('unable to init libvips')",
    "silent": "raise RuntimeError",
}


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A function that puts a package which fails to start before the one that is installed."""

    def breaks(module: str, failure: str = "library") -> None:
        package = module.partition(".")[0]
        folder = tmp_path / "broken" / package
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text(f"{FAILURES[failure]}\n")
        for name in [name for name in sys.modules if name.partition(".")[0] == package]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.syspath_prepend(folder.parent)

    return breaks


@pytest.mark.parametrize("failure", FAILURES)
def test_what_fails_to_start_is_told_from_what_is_missing(broken, failure: str) -> None:
    broken("pyvips", failure)
    assert str(import_problem("pyvips")).startswith("pyvips is installed but cannot be imported (")
    assert import_problem("nobody_has_this") == "nobody_has_this is not installed"
    assert import_problem("json.decoder") is None


def test_a_picture_by_tiles_without_libvips_is_one_line_with_the_remedy(tmp_path: Path, broken) -> None:
    (tmp_path / "a.png").write_bytes(saved(noisy(), "PNG"))
    broken("pyvips")
    with pytest.raises(UnavailableError) as caught:
        sources.open_source(tmp_path / "a.png")
    assert "pyvips is installed but cannot be imported" in str(caught.value)
    assert "pip install '.[vips]'" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("peer", [peer for peer in PEERS if peer.device == "cpu"], ids=lambda peer: peer.name)
def test_a_peer_that_does_not_start_is_left_out_with_the_reason(broken, peer) -> None:
    module = peer.library.module
    if module in ("subprocess", "cv2"):
        pytest.skip("a command, and a base dependency")
    broken(module)
    reason = peer.unavailable_reason()
    assert reason is not None
    assert "is installed but cannot be imported" in reason or "is not installed" in reason  # onnx is asked for first
    assert "pip install" in reason
    if peer.name == "pyvips":
        assert NO_LIBRARY in reason
        assert "pip install 'pyvips[binary]'" in reason


def test_the_check_up_says_no_of_a_library_that_does_not_start(broken) -> None:
    broken("zarr")
    (line,) = (line for line in doctor.text().splitlines() if line.startswith("  zarr "))
    assert f"  no: zarr is installed but cannot be imported ({NO_LIBRARY}): " in line
    assert "pip install" in line


def test_a_worker_says_zlib_where_isal_does_not_start(broken) -> None:
    assert "PNG by isal" in maker_here()
    broken("isal")
    assert "PNG by zlib" in maker_here()
