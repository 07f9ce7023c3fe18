"""Another program on the same screen, from which pictures are dragged and pasted; told what to do line by line.

python other_program.py X Y SIDE   a small window at (X, Y); prints "ready", and a line after each command; of a drag
                                   "drags", "may ACTION" where it could be let go, and "dropped ACTION"

hold files PATH...      what a drag that begins on the window carries from now on, and what the clipboard holds
hold picture PATH       ... the picture itself, as another program's picture
hold text WORDS         ... a text
store PATH              writes the picture that the clipboard holds, whoever put it there
"""

from __future__ import annotations

import sys
from threading import Thread

from PySide6.QtCore import QMimeData, QObject, Qt, QUrl, Signal
from PySide6.QtGui import QDrag, QGuiApplication, QImage, QMouseEvent
from PySide6.QtWidgets import QApplication, QWidget


def mime(kind: str, *values: str) -> QMimeData:
    data = QMimeData()
    if kind == "files":
        data.setUrls([QUrl.fromLocalFile(value) for value in values])
    elif kind == "picture":
        data.setImageData(QImage(values[0]))
    else:
        data.setText(" ".join(values))
    return data


class Source(QWidget):
    """Wherever it is pressed and pulled, a drag begins."""

    def __init__(self, x: int, y: int, side: int) -> None:
        super().__init__(None, Qt.WindowType.X11BypassWindowManagerHint | Qt.WindowType.WindowStaysOnTopHint)
        self.setGeometry(x, y, side, side)
        self.held: tuple[str, ...] = ()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        drag = QDrag(self)
        drag.setMimeData(mime(*self.held))
        drag.actionChanged.connect(lambda action: print(f"may {action.name}", flush=True))
        print("drags", flush=True)
        taken = drag.exec(Qt.DropAction.CopyAction)
        print(f"dropped {taken.name}", flush=True)


class Reader(QObject):
    """Lines of standard input, on the interface thread."""

    said = Signal(str)

    def run(self) -> None:
        for line in sys.stdin:
            self.said.emit(line.rstrip("\n"))


def main() -> None:
    app = QApplication(sys.argv[:1])
    source = Source(*map(int, sys.argv[1:4]))

    def obey(line: str) -> None:
        words = line.split("\t")
        if words[0] == "hold":
            source.held = tuple(words[1:])
            QGuiApplication.clipboard().setMimeData(mime(*source.held))
        else:
            QGuiApplication.clipboard().image().save(words[1])
        print(words[0], flush=True)

    reader = Reader()
    reader.said.connect(obey)
    Thread(target=reader.run, daemon=True).start()
    source.show()
    source.raise_()
    print("ready", flush=True)
    app.exec()


if __name__ == "__main__":
    main()
