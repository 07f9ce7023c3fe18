"""The benchmark: a grid of cases, what competes at each, checked first, timed by turns, and one JSON record of it all.

    grid.py       which cases: sizes × strides × types × filters × channels, by words, TOML file or name (grids.toml),
                  and how each is measured
    surface.py    cases that are drawn at random, and how near to its limit a method is at each
    synthetic.py  weights that are random and always the same
    candidates.py   what competes: the project's methods, and a plain copy, which is the floor
    peers/        what else: a function of a few lines per library
    measure.py    one case: check, time by turns, check again
    referee.py    nothing gets a time for work that it did not do
    watch.py      whether the machine stayed the same meanwhile
    runner.py     the whole grid: progress, files that are always complete, resuming
    record.py     the record with its schema, and the figures of a row by their formulas
    ab.py         two versions by turns: calls of a grid, in a process of each (ab_side.py)
    summary.py    the fastest at each case; intervals.py: how sure a ratio of two times is
    goals.py      the bars that the project sets itself (goals.toml), and what a record says about them
    ladders/      matrix products beside cuBLAS and convolutions beside a copy, step by step

Importing the package loads no array library.
"""
