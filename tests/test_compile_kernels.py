"""scripts/compile_kernels.py: what it reads out of ptxas' words, and that a spill or an error is not overlooked."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
from command import PROJECT
from command import script as load_script

from edgeconv.errors import UnavailableError
from edgeconv.hardware.cuda import limits
from edgeconv.hardware.cuda.kernels import KernelVariant

LOG = """default_program(3): warning #177-D: variable "unused" was declared but never referenced
ptxas info    : 48 bytes gmem
ptxas info    : Compiling entry function 'finish' for 'sm_90'
ptxas info    : Function properties for finish
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 11 registers, used 0 barriers
ptxas info    : Compile time = 3.910 ms
ptxas info    : Compiling entry function 'stage' for 'sm_90'
ptxas info    : Function properties for stage
ptxas         .     40 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Function properties for _Z4fillPh
ptxas         .     16 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 168 registers, used 1 barriers, 12288 bytes smem, 724 bytes cmem[0]
"""

SPILLS = r"""
extern "C" __global__ void __launch_bounds__(1024, 2) spills(float *data) {
    float kept[96];
#pragma unroll
    for (int i = 0; i < 96; ++i) kept[i] = data[i * 1024 + threadIdx.x];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 96; ++i) data[i * 1024 + threadIdx.x] = kept[95 - i] * kept[i] + kept[(i * 7) % 96];
}
"""


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """The script as a module."""
    return load_script("compile_kernels")


def test_each_kernel_of_a_source_gets_its_own_figures(script: ModuleType) -> None:
    assert list(script.parse_log(LOG, "finish").values()) == [11, 0, 0, 0]
    assert list(script.parse_log(LOG, "stage").values()) == [168, 12288, 40, 12]


def test_a_line_marks_what_is_wrong(script: ModuleType) -> None:
    good, bad = KernelVariant("a.cu", "a", (("STRIDE", 2),)), KernelVariant("b.cu", "b")
    right = script.CompiledKernel(good, "sm_90", dict(zip(script.FIGURES, (40, 4096, 0, 0), strict=True)), "")
    assert (str(right), right.wrong) == ("sm_90  40 registers, 4,096 bytes shared | a.cu a STRIDE=2", None)
    broken = script.CompiledKernel(bad, "sm_75", None, "error: no")
    assert broken.wrong == "sm_75  DOES NOT COMPILE | b.cu b:\nerror: no"
    spilled = script.CompiledKernel(bad, "sm_90", dict(zip(script.FIGURES, (255, 0, 64, 48), strict=True)), "")
    assert spilled.wrong == "sm_90  255 registers, 64 bytes local, 48 bytes SPILLED | b.cu b"


def test_every_source_s_kernels_are_asked_for_by_turns(script: ModuleType) -> None:
    listed, package, both = script.every_variant(), PROJECT / "edgeconv", ("sm_75", "sm_120")
    sources = {path.relative_to(package).as_posix() for path in package.rglob("*.cu")}
    assert ({variant.source for variant in listed}, len(set(listed))) == (sources, len(listed))
    assert len(script.asked_for(listed, both, False)) == 2 * len(listed)
    asked = script.asked_for(listed, both, True)
    assert [variant for variant, _ in asked] == listed
    for name in both:
        of = [variant for variant, architecture in asked if architecture == name]
        assert len(of) > len(listed) / 3
        assert {variant.source for variant in of} >= {name for name in sources if "limits" not in name}, "one has one"


def test_a_spill_and_an_error_are_found_and_a_good_kernel_is_good(script: ModuleType, tmp_path: Path) -> None:
    try:
        script._nvrtc()
    except UnavailableError as error:
        pytest.skip(str(error))
    spills, wrong = tmp_path / "spills.cu", tmp_path / "wrong.cu"
    spills.write_text(SPILLS, encoding="utf-8")
    wrong.write_text("this is no kernel", encoding="utf-8")
    compiled = script.compile_all([(KernelVariant(str(path), path.stem), "sm_90") for path in (spills, wrong)])
    assert compiled[0].figures["bytes SPILLED"] > 0
    assert compiled[1].figures is None
    assert all(one.wrong for one in compiled)
    (roof,) = [variant for variant in limits.variants() if variant.entry == "fma_chains"]
    for compiled in script.compile_all([(roof, architecture) for architecture in script.ARCHITECTURES]):
        assert compiled.wrong is None
