"""How many of the package's functions a call goes through: `convolve`, cold and warm, and `edgeconv run`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from command import PROJECT
from problems import random_image

from edgeconv.io.encoding import write_image

COUNTED = """
import json, sys
from pathlib import Path
import numpy, edgeconv
from edgeconv.api.convolve import convolve

HOME, WRITERS = str(Path(edgeconv.__file__).parent), ("emit.py", "crew_code.py")
FUNCTION = 2  # CO_NEWLOCALS, which bodies of classes and modules do not have

def profiled():
    stack, deepest, calls = [], [], {}
    def see(frame, event, argument):
        code = frame.f_code
        if code.co_filename.startswith(HOME) and code.co_flags & FUNCTION and not code.co_name.startswith("<"):
            if event == "call":
                stack.append(code.co_name)
                file = Path(code.co_filename).name
                calls[file] = calls.get(file, 0) + 1
                if len(stack) > len(deepest):
                    deepest[:] = stack
            elif event == "return":
                stack.pop()
    sys.setprofile(see)
    convolve(image, "sobel", "sliding", channels="each", device="cpu")
    sys.setprofile(None)
    return deepest, calls

image = numpy.zeros((512, 512, 3), "uint8")
_, cold = profiled()
deepest, _ = profiled()
print(json.dumps([deepest, {file: count for file, count in cold.items() if file not in WRITERS}]))
"""


def test_a_cold_call_makes_few_calls_and_a_warm_one_goes_straight_to_the_engine() -> None:
    done = subprocess.run([sys.executable, "-c", COUNTED], cwd=PROJECT, capture_output=True, text=True, check=True)
    deepest, cold = json.loads(done.stdout)
    assert deepest[:2] == ["convolve", "__call__"]
    assert len(deepest) <= 6, deepest
    assert sum(cold.values()) <= 600, sorted(cold.items(), key=lambda item: -item[1])


RUN = """
import contextlib, io, json, sys, threading
import edgeconv
from edgeconv.cli import main
from edgeconv.hardware import threads

threads.LIMITS_SECONDS = 1e9  # read once, however long the first run takes
HOME, FUNCTION = edgeconv.__path__[0], 2
entered, decoder = set(), []

def see(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(HOME) and code.co_flags & FUNCTION and code.co_name[0] != "<":
        entered.add((code.co_filename, code.co_qualname))
    elif event == "c_call" and argument.__name__ == "imdecode":
        while code.co_name != "run_picture":
            decoder.append(code.co_name)
            frame = frame.f_back
            code = frame.f_code

def run():
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        main()

run()
threading.setprofile(see)
sys.setprofile(see)
run()
sys.setprofile(None)
print(json.dumps([sorted(entered), decoder[::-1]]))
"""


def test_a_run_of_one_picture_enters_few_functions(tmp_path: Path) -> None:
    """A second run in one process, which loads nothing and finds the output of the first."""
    write_image(random_image(200, 300, "uint8"), tmp_path / "photo.jpg")
    words = ["run", str(tmp_path / "photo.jpg"), "--method", "opencv", "--samples", "0", "--check", "none"]
    command = [sys.executable, "-c", RUN, *words, "-o", str(tmp_path / "edges.png")]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True)
    entered, decoder = json.loads(done.stdout)
    assert (tmp_path / "edges.json").exists()
    assert len(decoder) <= 3, decoder
    assert len({file for file, _ in entered}) <= 54, entered
    assert len(entered) <= 243, entered
