"""One picture from a file to a file, whole or by tiles, and the report of it."""
