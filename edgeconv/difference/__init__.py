"""Where two outputs differ, how much, and what it looks like.

    inputs      the pictures to compare, decoded one at a time, and their conversions
    figures     exact figures in one pass over strips; regions finds the connected differing parts
    scale       the fixed classes of difference shared by histogram, heat map, legend and page
    ssim        SSIM, on request
    record      the figures as JSON and as text; junit the same for CI
    pictures    heat, signed, side by side, overlay
    page        one self-contained page; tiles, tables and gallery are parts of it, viewer/ is its script
    folders     pairs by relative name, and accepting a new baseline
    methods     every convolution method that runs here against the reference

A difference is always `other − reference`.
"""
