"""Where two outputs differ, how much, and what it looks like.

    inputs      pictures that are to be compared, decoded one at a time, and their conversions
    metrics     exact figures in one pass over strips; regions finds the connected differing parts
    scale       the fixed classes of difference that histogram, heat map, legend and page share
    perceptual  SSIM and FLIP, when asked for
    record      the figures as JSON and as text; junit the same for CI
    pictures    heat, signed, side by side, overlay, contact sheet
    html        one self-contained page
    folders     pairs by relative name, and accepting a new baseline
    methods     every convolution method that runs here against the reference

A difference is always `other − reference`.
"""
