"""Many pictures: `run` finds, settles, starts, records and summarizes; `tasks` and `names` say which pictures go where;
`process` takes them through five stages, which an engine (`engines`) runs in threads or on a Dask cluster; `stores`
are folders and buckets; the `ledger` has a row for each, which `verify` compares with the files later.
"""
