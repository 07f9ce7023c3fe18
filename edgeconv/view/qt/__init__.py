"""The widgets. Each draws what the model holds and says what the user did; none computes pixels or figures.

    start     what must be there before Qt is touched        app  the application, ended by its window or by a signal
    window    what the window does: joins the model, the workers and the widgets
    frame     its widgets, menus and bars, put together      actions  every command with its key, in one table
    canvas    the picture area: five ways to look, zoom, pan, the bar, values of single pixels
    seen      where a layer lies on the screen               furniture  what is drawn over it
    tiles     pieces of pictures as QImages, bounded
    controls  the knobs                                      kernel  the 3×3 editor among them
    fields    lines, lists and numbers of the knobs
    rows      figures in two columns; speed is one           history, benchpanel, plot  runs and curves
    tasks     work that nothing cancels                      outgoing, benchrun  save, export, copy; bench
    words     text that is never taken for markup
    theme     light and dark                                 icons  drawn lines that follow it
    memory    what is kept from one time to the next

Nothing outside this folder knows of Qt.
"""
