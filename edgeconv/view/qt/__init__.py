"""The widgets. Each draws what the model holds and says what the user did; none computes pixels or figures.

    start           what must be present before Qt is imported
    app             the application, ended by its window or by a signal
    window          the behaviour: connects the model, the workers and the widgets
    frame           its widgets, menus and bars
    actions         every command with its key, in one table
    canvas          the picture area: five views, zoom, pan, the bar
    layer           a layer as an item of it: tiles, and values of single pixels
    overlays        what is drawn over it
    controls        the controls for filter, method and rules
    kernel          the 3×3 editor among them
    fields          text, list and number fields of the controls
    rows            figures in two columns; speed is one of them
    history         measured runs
    opening         files, and pictures that are pasted or dropped
    export_actions  save, export, copy
    plain_text      text that is never interpreted as markup
    icons           line icons that follow the palette
    memory          settings that are stored between sessions

Outside this folder only render.py imports Qt, for its threads.
"""
