"""The desktop window: change a setting, see edges and speed at once, compare methods side by side.

    parameters      the values of the controls, and the equivalent `edgeconv run` command line
    timeline        undo and redo
    sources         what a side may show
    viewport        where the picture lies: zoom and pan
    state           all of that together: pictures, modes, requests by generation, runs
    pyramid         pictures in tiles at every size
    lru_cache       results that are expensive to compute, bounded by bytes
    background      threads, and leaving while one is still at work
    latest_request  only the newest request is served
    signals         Ctrl-C, noted until it can be obeyed
    compute         what a request computes, step by step
    qt/             the widgets

The window's state is a model that is tested without a window.
"""
