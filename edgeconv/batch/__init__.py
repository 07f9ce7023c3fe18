"""Many pictures: what there is to do (`plan`, `names`), what becomes of one picture (`work`), who does it (`engines`),
where pictures lie (`stores`), the record of it (`ledger`), and the batch that holds them together (`pipeline`).
"""
