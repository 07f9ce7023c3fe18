"""Pictures larger than memory: read, filtered and written by tile, with a limit on the memory of the process.

sources/   pictures that are read by pieces: TIFF, Zarr      grid.py     where tiles lie, what they need
reader.py  chunks put together to a tile's padded window     memory.py   what a tile costs; the tile that fits
sinks/     outputs that are written by pieces                pipeline.py read ahead, filter, write behind
check.py   windows against the float64 oracle                proof.py    tiles against the whole picture
job.py     a picture file in, its edges in another           record.py   what the report says of tiles
"""
