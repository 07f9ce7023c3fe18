"""What a convolution of a picture is: pure Python and NumPy, no files, no devices.

The glossary stands at the top of problem.py.
"""
