python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade --target /tmp/site .wheels/msgspec*.whl
export PYTHONUNBUFFERED=1 PYTHONPATH=.:/tmp/site; T0=$SECONDS
for i in $(seq 0 15); do (timeout 100 python3 .flat/sweep.py new 2501 $i/16 grid; timeout 60 python3 .flat/sweep.py new 2048 $i/16; PYTHONPATH=.flat/old:/tmp/site timeout 60 python3 .flat/sweep.py old 2501 $i/16) > /tmp/c$i.log 2>&1 & done; wait; echo compiled $((SECONDS-T0))
PYTHONPATH=.flat/old:/tmp/site timeout 25 python3 .flat/sweep.py old 2501 x > $OUT/old2501.jsonl
timeout 60 python3 .flat/sweep.py new 2501 x grid > $OUT/grid2501.jsonl 2>>$OUT/err.txt; echo timed $((SECONDS-T0))
timeout 25 python3 .flat/sweep.py new 2048 x > $OUT/new.jsonl 2>$OUT/err2.txt; echo timed $((SECONDS-T0))
wc -l $OUT/*; tail -3 $OUT/err2.txt
