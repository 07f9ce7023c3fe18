"""Reading and writing of pictures and other files: writes are atomic, and no input is trusted."""
