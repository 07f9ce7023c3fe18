"""Names of reading.py and encoding.py."""

from edgeconv.io.encoding import ALL_OF_A_BANK as ALL_OF_A_BANK
from edgeconv.io.encoding import encode_bank as encode_bank
from edgeconv.io.encoding import encode_image as encode_image
from edgeconv.io.encoding import pictures_of as pictures_of
from edgeconv.io.encoding import write_image as write_image
from edgeconv.io.reading import DEPTH_NOTE as DEPTH_NOTE
from edgeconv.io.reading import FRAMES_NOTE as FRAMES_NOTE
from edgeconv.io.reading import GREY_NOTE as GREY_NOTE
from edgeconv.io.reading import MAX_SIDE as MAX_SIDE
from edgeconv.io.reading import PROFILE_NOTE as PROFILE_NOTE
from edgeconv.io.reading import SAID_NOTE as SAID_NOTE
from edgeconv.io.reading import STREAM_NAME as STREAM_NAME
from edgeconv.io.reading import Picture as Picture
from edgeconv.io.reading import decode_image as decode_image
from edgeconv.io.reading import longest_side as longest_side
from edgeconv.io.reading import read_image as read_image
from edgeconv.io.reading import read_pages as read_pages
from edgeconv.io.reading import read_picture_bytes as read_picture_bytes
