"""The desktop window: change a setting, see edges and speed at once, compare methods side by side.

    parameters      the values of the controls, and the equivalent `edgeconv run` command line
    timeline        undo and redo
    state           all of that together: pictures, sides, modes, requests by generation, runs
    layers          pictures as a screen shows them, in full and in halves
    render          what a request computes, on Qt's threads: only the newest is served, results are cached
    qt/             the widgets

The window's state is a model that is tested without a window.
"""
