"""The measured profile: what is kept, what is read back, and what `auto` makes of it."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import pytest
from bench_records import TimedMethod, WrongMethod, measured
from command import edgeconv

from edgeconv.bench.tune import GRID, profile_of, start_seconds
from edgeconv.core.request import make_request
from edgeconv.errors import UnavailableError, UsageError
from edgeconv.methods import METHODS
from edgeconv.runtime import auto
from edgeconv.runtime import profile as tuned
from edgeconv.runtime.auto import choose
from edgeconv.runtime.devices import get_device
from edgeconv.runtime.profile import Curve, Point, Profile, machine_facts, read_profile

MEGAPIXEL = 1024 * 1024


def curve(method: str, seconds: float, start: float = 0.0, **changes) -> Curve:
    """A method that takes `seconds` a Mpixel."""
    points = (Point(MEGAPIXEL // 4, seconds / 4, 0), Point(MEGAPIXEL, seconds, 0))
    return Curve(**{"method": method, "device": "cpu", "stride": 1, "dtype": "uint8", "start_seconds": start,
                    "points": points, **changes})  # fmt: skip


def keep(monkeypatch, tmp_path, *curves: Curve) -> None:
    path = tmp_path / "profile.json"
    path.write_bytes(Profile(machine_facts(get_device("cpu").describe()), curves).to_json())
    monkeypatch.setenv(tuned.PLACE_VARIABLE, str(path))


def problem(size: int = 1024, dtype: str = "uint8", stride: int = 1):
    return make_request(stride=stride).problem((size, size, 3), dtype)


def test_times_lie_on_straight_lines_of_log_axes() -> None:
    points = (Point(100, 1.0, 0), Point(10_000, 100.0, 50_000))
    found = curve("x", 0.0, points=points)
    assert found.seconds(1000) == pytest.approx(10.0)
    assert (found.seconds(10), found.seconds(100), found.seconds(10_000)) == (1.0, 1.0, 100.0)
    assert found.seconds(20_000) == 200.0
    assert found.workspace_bytes(20_000) == 100_000


def test_a_profile_comes_back_as_it_was_kept(monkeypatch, tmp_path) -> None:
    kept = (curve("sliding", 1e-3), curve("opencv", 2e-3, 0.1))
    keep(monkeypatch, tmp_path, *kept)
    profile, note = read_profile(machine_facts(get_device("cpu").describe()))
    assert (profile.curves, note) == (kept, "")


@pytest.mark.parametrize(
    ("change", "note"),
    [
        (lambda record: record["machine"].update(name="another"), "another machine"),
        (lambda record: record.update(edgeconv_version="0"), "another edgeconv"),
        (lambda record: record["curves"][0].pop("points"), "not complete"),
        (lambda record: record["curves"][0].update(points=[]), "not complete"),
        (lambda record: record["curves"][0]["points"][0].update(pixels="100"), "not complete"),
        (lambda record: record["curves"][0]["points"][0].update(seconds=0.0), "not complete"),
        (lambda record: record["curves"][0]["points"].reverse(), "not complete"),
        (lambda record: record["curves"][0].update(device="tpu"), "not complete"),
        (lambda record: record["curves"][0].update(method="of a package that is gone"), "nothing that can run here"),
    ],
)
def test_a_profile_that_does_not_hold_is_passed_over_and_said(monkeypatch, tmp_path, change, note) -> None:
    keep(monkeypatch, tmp_path, curve("im2col", 1e-9))
    path = tuned.profile_path()
    record = json.loads(path.read_text(encoding="utf-8"))
    change(record)
    path.write_text(json.dumps(record), encoding="utf-8")
    choice = choose("auto", "cpu", "one picture", problem())
    assert choice.method == "opencv"
    assert note in choice.why
    assert "edgeconv tune" in choice.why


def test_a_file_that_is_no_profile_is_passed_over(monkeypatch, tmp_path) -> None:
    path = tmp_path / "profile.json"
    path.write_text("{", encoding="utf-8")
    monkeypatch.setenv(tuned.PLACE_VARIABLE, str(path))
    assert "cannot be read" in choose("auto", "cpu", "many pictures", problem()).why


def test_without_a_profile_the_rules_hold_and_nothing_is_said() -> None:
    assert not tuned.profile_path().exists()
    assert "profile" not in choose("auto", "cpu", "one picture", problem()).why


def test_one_picture_counts_the_start_and_many_do_not(monkeypatch, tmp_path) -> None:
    keep(monkeypatch, tmp_path, curve("im2col", 1e-3, start=0.5), curve("opencv", 10e-3, start=0.1))
    one = choose("auto", "cpu", "one picture", problem())
    assert (one.method, one.device) == ("opencv", "cpu")
    assert "110 ms, its start of 100 ms included" in one.why
    many = choose("auto", "cpu", "many pictures", problem())
    assert many.method == "im2col"
    assert many.why == "the least time by this machine's profile: 1 ms; next: opencv on cpu, 10 ms"


def test_a_batch_pays_for_a_start_once(monkeypatch, tmp_path) -> None:
    keep(monkeypatch, tmp_path, curve("im2col", 1e-3, start=0.5), curve("opencv", 10e-3, start=0.1))
    few, many = (choose("auto", "cpu", "many pictures", problem(), pictures) for pictures in (20, 100))
    assert (few.method, many.method) == ("opencv", "im2col")
    assert "300 ms, its start of 100 ms included; next: im2col on cpu, 520 ms" in few.why


def test_a_large_picture_pays_for_a_slow_start(monkeypatch, tmp_path) -> None:
    keep(monkeypatch, tmp_path, curve("im2col", 1e-3, start=0.5), curve("opencv", 10e-3, start=0.1))
    assert choose("auto", "cpu", "one picture", problem(16_384)).method == "im2col"


def test_stride_and_type_choose_the_curve(monkeypatch, tmp_path) -> None:
    keep(
        monkeypatch,
        tmp_path,
        curve("opencv", 1e-3),
        curve("im2col", 2e-3),
        curve("opencv", 2e-3, stride=3),
        curve("im2col", 1e-3, stride=3),
        curve("sliding", 1.0, dtype="float32"),
    )
    assert choose("auto", "cpu", "many pictures", problem()).method == "opencv"
    assert choose("auto", "cpu", "many pictures", problem(stride=7)).method == "im2col"
    assert choose("auto", "cpu", "many pictures", problem(dtype="uint16")).method == "opencv"
    assert choose("auto", "cpu", "many pictures", problem(dtype="float16")).method == "sliding"


def test_a_method_without_memory_is_passed_over_and_said(monkeypatch, tmp_path) -> None:
    hungry = (Point(MEGAPIXEL // 4, 1e-4, 2**38), Point(MEGAPIXEL, 4e-4, 2**40))
    keep(monkeypatch, tmp_path, curve("im2col", 0.0, points=hungry), curve("opencv", 1e-2))
    monkeypatch.setattr(type(get_device("cpu")), "free_bytes", lambda self: 2**30)
    choice = choose("auto", "cpu", "many pictures", problem())
    assert choice.method == "opencv"
    assert "im2col on cpu needs" in choice.why


def test_a_method_that_was_wrong_at_any_size_has_no_curve(monkeypatch) -> None:
    right, wrong = TimedMethod("opencv", [1e-3], "opencv"), WrongMethod("reference", [1e-9])
    record = measured(monkeypatch, right, wrong)
    profile = profile_of(record, lambda method, device: 0.25)
    (found,) = profile.curves
    assert (found.method, found.start_seconds, found.dtype, found.stride) == ("opencv", 0.25, "float32", 1)
    assert [(point.pixels, point.seconds) for point in found.points] == [(64, 1e-3), (256, 1e-3)]


def test_a_start_is_timed_in_a_process_of_its_own() -> None:
    assert 0.01 < start_seconds("opencv", "cpu") < 100
    with pytest.raises(UnavailableError, match="does not start"):
        start_seconds("nothing", "cpu")


@pytest.mark.parametrize(
    ("platform", "variable", "tail"),
    [("linux", "XDG_CACHE_HOME", "edgeconv/profile.json"), ("win32", "LOCALAPPDATA", "edgeconv/profile.json")],
)
def test_the_profile_lies_in_the_users_cache(monkeypatch, tmp_path, platform, variable, tail) -> None:
    monkeypatch.delenv(tuned.PLACE_VARIABLE)
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setenv(variable, str(tmp_path))
    assert tuned.profile_path() == tmp_path / tail


@pytest.mark.slow
def test_the_command_measures_and_run_goes_by_it(monkeypatch, tmp_path) -> None:
    place = tmp_path / "deep" / "profile.json"
    monkeypatch.setenv(tuned.PLACE_VARIABLE, str(place))
    done = edgeconv("tune", cwd=tmp_path)
    assert done.code == 0, done.err
    assert done.text.splitlines()[0] == str(place)
    profile, note = read_profile(machine_facts(get_device("cpu").describe()))
    assert note == ""
    sizes = {len(entry.points) for entry in profile.curves}
    assert sizes == {len(GRID.parts[0].sizes)}
    assert "profile" in choose("auto", "cpu", "many pictures", problem()).why


def test_what_is_there_to_compare_is_not_measured_for_a_choice() -> None:
    left_out = {entry.name for entry in METHODS} - set(GRID.parts[0].methods)
    assert left_out == {"reference", "textbook"}


OF_THE_MACHINE = ("name", "usable_threads")
"""What a profile must share with the machine that it is read on."""


@pytest.mark.parametrize("fact", OF_THE_MACHINE)
@pytest.mark.parametrize("other", [None, 0, "another"], ids=str)
def test_a_profile_of_a_machine_that_differs_in_one_fact_is_passed_over(monkeypatch, tmp_path, fact, other) -> None:
    keep(monkeypatch, tmp_path, curve("im2col", 1e-9))
    path = tuned.profile_path()
    record = json.loads(path.read_text(encoding="utf-8"))
    assert tuple(record["machine"]) == OF_THE_MACHINE
    assert choose("auto", "cpu", "many pictures", problem()).method == "im2col"
    if other is None:
        del record["machine"][fact]
    else:
        record["machine"][fact] = other
    path.write_text(json.dumps(record), encoding="utf-8")
    choice = choose("auto", "cpu", "many pictures", problem())
    assert choice.method != "im2col"
    assert "another machine" in choice.why


@pytest.mark.parametrize(("dtype", "mode", "samples"), [("uint8", None, 1 + 1), ("uint8", "raw", 1 + 4)])
@pytest.mark.parametrize("workspace", [0, 7])
@pytest.mark.parametrize("stride", [1, 2])
def test_auto_counts_picture_output_and_workspace(monkeypatch, tmp_path, dtype, mode, samples, workspace, stride):
    """To the byte: with just so much it runs, with one byte less it does not."""
    points = (Point(100, 1e-9, workspace * 100), Point(200, 1e-9, workspace * 200))
    keep(monkeypatch, tmp_path, curve("im2col", 0.0, points=points, stride=stride), curve("opencv", 1.0, stride=stride))
    asked = make_request(stride=stride, output_mode=mode).problem((40, 60, 3), dtype)
    stored = samples - 1
    needed = 40 * 60 * 3 + (40 // stride) * (60 // stride) * 3 * stored + 40 * 60 * workspace
    for free, method in ((needed, "im2col"), (needed - 1, None)):
        monkeypatch.setattr(type(get_device("cpu")), "free_bytes", lambda self, free=free: free)
        choice = choose("auto", "cpu", "many pictures", asked)
        if method is not None:
            assert choice.method == method
        elif workspace:
            assert choice.method == "opencv"
            assert f"im2col on cpu needs {needed:,} bytes of {free:,} free" in choice.why
        else:
            assert "profile has nothing that can run here" in choice.why


WIDE = [[30, 60, 30], [60, -360, 60], [30, 60, 30]]
"""Its sums over 16-bit samples are beyond what float32 holds."""


@pytest.mark.parametrize(("dtype", "fastest"), [("uint8", "opencv"), ("uint16", "sliding"), ("float32", "opencv")])
def test_the_fastest_that_is_exact_for_these_weights_is_chosen(monkeypatch, tmp_path, dtype: str, fastest: str) -> None:
    """As if OpenCV were such a method, which needs a GPU."""

    def find(method: str, device: str) -> SimpleNamespace:
        loaded = SimpleNamespace(unavailable_reason=lambda: None)
        return SimpleNamespace(float32_sums=method == "opencv", load=lambda: loaded)

    monkeypatch.setattr(auto, "find", find)
    keep(monkeypatch, tmp_path, curve("opencv", 1e-3, dtype=dtype), curve("sliding", 2e-3, dtype=dtype))
    found = choose("auto", "cpu", "many pictures", make_request(WIDE).problem((1024, 1024, 3), dtype))
    assert found.method == fastest
    assert ("opencv on cpu sums in float32, which is not exact for these weights" in found.why) == (dtype == "uint16")


@pytest.mark.parametrize(
    ("method", "device", "words"),
    [
        ("fastest", "auto", "Method 'fastest' is not known: use auto or one of reference"),
        ("auto", "tpu", "Device 'tpu' is not one of auto, cpu, cuda"),
    ],
)
def test_names_that_are_not_known_are_refused(method: str, device: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        choose(method, device, "one picture")


def test_no_profile_is_nothing_to_speak_of(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv(tuned.PLACE_VARIABLE, str(tmp_path / "none.json"))
    assert read_profile({}) == (None, "")


def test_where_a_profile_can_be_saved_is_tried_and_nothing_left(monkeypatch, tmp_path) -> None:
    path = tmp_path / "deep" / "profile.json"
    monkeypatch.setenv(tuned.PLACE_VARIABLE, str(path))
    assert tuned.place_to_save() == path
    assert list(path.parent.iterdir()) == []
