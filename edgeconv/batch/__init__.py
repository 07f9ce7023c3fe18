"""Many pictures: which go where (`plan`), the work itself (`pipeline`), and the record of it (`ledger`)."""
