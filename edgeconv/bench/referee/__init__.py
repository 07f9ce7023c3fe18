"""The referee: nothing gets a time for work that it did not do.

    faults.py        what a candidate can be disqualified for, by name
    pictures.py      the pictures that are timed: drawn at run time, at other addresses, changed before each sample
    trials.py        the trials of a method before it is timed, what is looked at after each sample, and at the end
    floors.py        times that no candidate can reach

A method writes to arrays of the bench, so it is tried in all of this. A peer holds its arrays itself: it is set up a
second time with a picture that is drawn at run time, and what is timed is checked at the end.
"""
