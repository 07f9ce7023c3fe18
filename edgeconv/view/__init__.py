"""The desktop window: turn the knobs, see edges and speed at once, compare methods side by side.

    parameters  what the knobs say, in the words of `edgeconv run`, and the command line they stand for
    timeline    undo and redo
    sources     what a side may show           viewport  where the picture lies: zoom and pan
    state       all of that together: pictures, modes, requests by generation, runs
    pyramid     pictures in tiles at every size
    keep        what is dear to make, bounded by bytes
    background  threads, and the end with one at work    lane  the newest request wins
    signals     Ctrl-C, noted until it can be obeyed
    work        what a request computes, step by step
    benching    GFLOPS over size for the picture at hand
    qt/         the widgets

The window's state is a model that is tested without a window.
"""
