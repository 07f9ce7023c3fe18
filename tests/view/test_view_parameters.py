"""The controls in the words of `edgeconv run`: what is copied gives, in a shell, what the window shows."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from command import edgeconv
from hypothesis import given
from hypothesis import strategies as st
from problems import random_image

from edgeconv import convolve
from edgeconv.cli.parser import load
from edgeconv.core.option import options_of
from edgeconv.errors import UsageError
from edgeconv.io.encoding import write_image
from edgeconv.io.read_limits import ReadRules
from edgeconv.io.reading import read_image
from edgeconv.options import Reading, RunOutput, Sampling, Tiling
from edgeconv.view.parameters import (
    MAX_CELL,
    Parameters,
    from_record,
    kernel_cells,
    kernel_text,
    same_number,
)

GROUPS = (RunOutput, Sampling, Reading, Tiling)
NO_FIELDS = {"picture", "filters"} | {entry.name for group in GROUPS for entry in options_of(group)}
"""Options of `edgeconv run` that say where pictures come from and go, and how a run is measured."""
RULES = ("channels", "luma", "stride", "padding", "border", "output_mode", "device")
EDGES = Parameters(filter="sobel", channels="each", stride=2)


def test_defaults_are_those_of_the_command() -> None:
    command = {parameter.name: parameter.default for parameter in load("run").params}
    for name, value in vars(Parameters()).items():
        assert command.pop(name) == value, name
    assert command.keys() <= NO_FIELDS, "an option of run that is neither a field nor known to be none"


@pytest.mark.parametrize(
    "parameters",
    [
        Parameters(filter="sobel", channels="each", stride=2, border="reflect101"),
        Parameters().with_filter(kernel="-1,0,1;-2,0,2;-1,0,1.5"),
        Parameters(channels="luma", luma="bt709", padding="valid", output_mode="normalize"),
        Parameters(method="sliding", device="cpu", padding="2", threads=1, workspace_limit="64M"),
        Parameters(filter="canny"),
        Parameters(filter="canny", thresholds="50,150", gradient="l2", blur=3),
        Parameters(chain="gaussian,sobel,thin"),
    ],
    ids=lambda parameters: parameters.summary(),
)
def test_the_copied_command_gives_the_same_picture(parameters: Parameters, tmp_path) -> None:
    picture = random_image(23, 31, np.uint8)
    write_image(picture, tmp_path / "-odd name.png")
    program, subcommand, *rest = shlex.split(parameters.command("-odd name.png"))
    assert (program, subcommand) == ("edgeconv", "run")
    done = edgeconv("run", *rest, "-o", "out.png", "--samples", 0, cwd=tmp_path)
    assert done.code == 0, done.err
    rules = {name: getattr(parameters, name) for name in RULES} | {"device": "cpu"}
    expected = convolve(picture, parameters.request().filter, **rules)
    got = read_image(tmp_path / "out.png").pixels
    assert np.array_equal(got, np.broadcast_to(expected.reshape(*expected.shape[:2], -1), got.shape))


def test_rules_that_do_not_apply_go_with_their_filter() -> None:
    turned = replace(EDGES, border="reflect", threshold=40.0, method="sliding")
    by_canny = turned.with_filter("canny")
    assert by_canny.arguments() == ["--filter=canny", "--method=sliding"]
    assert by_canny.has_chain
    by_canny = replace(by_canny, thresholds="50,150", blur=5)
    assert by_canny.summary() == "canny, thresholds 50,150, blur 5"
    for back in (by_canny.with_filter("kirsch"), by_canny.with_filter(kernel="0,1,0;1,-4,1;0,1,0")):
        assert not back.has_chain
        assert back.request().chain is None
        assert not {"--thresholds=50,150", "--blur=5"} & set(back.arguments())
    own = Parameters(chain="sobel,thin")
    assert (own.filter_label, own.has_chain) == ("sobel,thin", True)
    assert own.with_filter("scharr").arguments() == ["--filter=scharr"]


@pytest.mark.parametrize(
    ("changes", "left"),
    [
        ({"chain": "sobel,thin"}, {}),
        ({"filter": "canny"}, {}),
        ({"filter": "scharr", "stride": 3}, {"channels": "each"}),
        ({"kernel": "0,1,0;1,-4,1;0,1,0"}, {"channels": "each", "stride": 2}),
        ({"stride": 3}, {"filter": "sobel", "channels": "each"}),
    ],
)
def test_what_is_given_replaces_what_is_remembered_and_rules_that_do_not_go_with_it(
    changes: dict[str, Any], left: dict[str, Any]
) -> None:
    assert EDGES.changed(changes) == Parameters(**(left | changes))


@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=9, max_size=9))
def test_any_kernel_survives_its_cells(values: list[float]) -> None:
    kernel = Parameters().with_filter(kernel=kernel_text([f"{value:.9g}" for value in values])).chosen_filter()
    cells = kernel_cells(kernel)
    assert all(len(cell) <= MAX_CELL for cell in cells)
    assert np.array_equal(Parameters(kernel=kernel_text(cells)).chosen_filter().kernels, kernel.kernels)


def test_numbers_are_the_same_as_weights_and_letters_are_none() -> None:
    assert same_number("0.1", "0.100000001")
    assert same_number(" 5", "5.0")
    assert not same_number("0.1", "0.10001")
    assert not any(same_number(text, "0") for text in ("", "-", "nan", "x"))


def test_the_rules_of_reading_are_copied() -> None:
    rules = {
        "--max-pixels=1073741824": ReadRules(max_pixels=2**30),
        "--max-bytes=9 --strict": ReadRules(2**28, 9, True),
    }
    assert [Parameters().command("a.png", each) for each in rules.values()] == [
        f"edgeconv run a.png {r}" for r in rules
    ]


def test_settings_come_back_and_nonsense_does_not(tmp_path) -> None:
    parameters = Parameters(filter="sobel", stride=3, threads=2)
    assert from_record(vars(parameters)) == parameters
    assert from_record({**vars(parameters), "from_a_later_version": 1}) == parameters
    for nonsense in (None, [], {"filter": "gone"}, {"stride": "many"}, {"padding": 7.5}, {"kernel": 5}):
        assert from_record(nonsense) == Parameters()
    kept = Parameters(stride=3, channels="each", threads=2)
    gone = kept.with_filter(kernel_file=str(tmp_path / "gone.json"))
    assert from_record(vars(gone)) == kept, "a kernel file that has gone takes no other field along"


@pytest.mark.parametrize(
    ("shape", "refused"), [((4, 1, 3, 3), True), ((3, 1, 3, 3), True), ((3, 3, 3, 3), False), ((1, 1, 3, 3), False)]
)
def test_the_window_shows_one_filter(tmp_path, shape: tuple[int, ...], refused: bool) -> None:
    """A file with several is refused when it is chosen; 3×3×3×3 numbers give one picture."""
    np.save(tmp_path / "k.npy", np.ones(shape))
    parameters = Parameters(kernel_file=str(tmp_path / "k.npy"))
    if refused:
        with pytest.raises(UsageError, match=f"a bank of {shape[0]} filters, and the window shows one"):
            parameters.request()
        assert from_record(vars(parameters)) == Parameters()
    else:
        assert parameters.request().filter.file is not None
