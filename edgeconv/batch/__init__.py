"""Many pictures: tasks and output names (`plan`, `names`), the processing of one picture (`worker`), the threads or
processes that run it (`engines`), where pictures are stored (`stores`), the record of each (`ledger`), and the batch as
a whole (`pipeline`).
"""
