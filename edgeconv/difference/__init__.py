"""Where two outputs differ, how much, and what it looks like.

    inputs      the pictures to compare, decoded one at a time, and their conversions
    figures     exact figures of a pair in one pass over strips, as the record that everything else shows
    compare     inputs against one reference: loads, checks layouts, gathers figures
    scale       the fixed classes of difference shared by histogram, heat map, legend and page
    maps        pictures and maps of classes as 8-bit RGB
    text        the result for a person
    pictures    the map as PNG, and thumbnails
    page        one self-contained page; tiles are parts of it, viewer/ is its script
    results     what a comparison writes
    folders     pairs by relative name, and accepting a new baseline
    methods     every convolution method that runs here against the reference

A difference is always `other − reference`.
"""
