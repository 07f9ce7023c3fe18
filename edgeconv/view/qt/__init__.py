"""The widgets. Each draws what the model holds and says what the user did; none computes pixels or figures.

    start           what must be present before Qt is imported
    app             the application, ended by its window or by a signal
    window          the behaviour: connects the model, the workers and the widgets
    frame           its widgets, menus and bars
    actions         every command with its key, in one table
    canvas          the picture area: five views, zoom, pan, the bar
    layer           a layer as an item of it: its pixels, and values of single ones
    overlays        what is drawn over it
    controls        the controls for filter, method and rules
    fields          their fields: by option row, the 3×3 editor, a threshold's slider
    runs            the lines of the speed panel, and measured runs
    busy            what lasts, and a way to stop it
    export_actions  save, export, copy
    plain_text      text that is never interpreted as markup, and panels of figures
    icons           line icons that follow the palette

Outside this folder only render.py imports Qt, for its threads.
"""
