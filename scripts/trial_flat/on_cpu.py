import sys, itertools, random
sys.path[:0]=['tests','.']
from pathlib import Path
from cpu_problems import Case, RANDOM, RANDOM_WHOLE, NO_RING, NO_RING_OPPOSITE
from kernel_work import Work, all_right, run_on_cpu
from edgeconv.methods.cuda.flat_rows import flat_filter
full = len(sys.argv)>1 and sys.argv[1]=='full'
works=[]
r=random.Random(3)
for f in ("laplacian8","sobel","kirsch","robinson","scharr","emboss","sobel-x","laplacian4","sobel/7"):
    for d in ("uint8","uint16","float16","float32","float64"):
        for chans,inc in (("each",3),("mix",1)):
            for mode in ("abs","clip","raw") if d[0]=='u' else ("abs","raw"):
                if not full and r.random()>.25: continue
                b=r.choice(("zero","replicate","reflect","reflect101"))
                pad=r.choice((1,1,1,0)); w=r.choice((64,48,45,67,131)); 
                c=Case(f,chans,d,mode,padding=pad,border=b,shape=(r.choice((7,13,20)),w),in_channels=inc)
                if flat_filter(c.problem()) is None: print('none',c); continue
                works.append(Work("flat_try:make",c,offset_samples=r.choice((0,0,1,5)) if w not in(64,48) else 0,pictures=1))
print(len(works))
sys.path.insert(0,'build/flat')
import os; os.environ['PYTHONPATH']='build/flat'
e=run_on_cpu(works,Path('build/flat/lib'))
print(e.code); print(e.text[-6000:])
