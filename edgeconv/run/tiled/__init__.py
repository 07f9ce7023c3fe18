"""Pictures larger than memory: read, filtered and written by tiles, with a limit on the memory of the process.

filtering.py    a picture file in, its edges in another      record.py       the part of the report about tiles
sources/        pictures that are read in chunks             sinks/          outputs that are written in pieces
grid.py         positions of tiles, and what they need       memory.py       memory of a tile; the tile that fits
reader.py       chunks assembled into padded windows         pipeline.py     read ahead, filter, write behind
check.py        windows against the float64 oracle           determinism.py  methods whose sums depend on position
verify_output.py  the file against a second computation
"""
