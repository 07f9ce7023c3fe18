"""How many of the package's functions a call of `convolve` goes through: cold, and warm from the door to the engine."""

from __future__ import annotations

import json
import subprocess
import sys

from command import PROJECT

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
