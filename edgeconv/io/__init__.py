"""Pixels and bytes, in and out: all or nothing, and nothing that somebody else made is trusted."""
