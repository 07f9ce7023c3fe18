import sys, re, subprocess, collections
sys.path[:0]=['.','scripts','tests']
import compile_kernels as ck
from edgeconv.methods.cuda.flat_rows import *
from edgeconv.methods.cuda.kernel_args import sample_problem
from edgeconv.hardware.cuda.kernels import KernelVariant
ALU={'IADD3','LOP3','LOP','SHF','PRMT','ISETP','SEL','IMNMX','VIMNMX','FMNMX','FSETP','MOV','LEA','FSEL','PLOP3','HMNMX2','VIADD','VIADDMNMX','IABS','HSETP2','R2P','P2R','FCHK','SGXT','BMSK','HSET2'}
def sass(variant, arch='sm_90'):
    nvrtc,headers=ck._nvrtc()
    err,prog=nvrtc.nvrtcCreateProgram((variant.text() if callable(variant.text) else variant.text).encode(), b"k.cu",0,[],[])
    opts=[o.encode() for o in (*variant.options, *ck.ADDED_BY_CUPY, f"--gpu-architecture={arch}", f"--include-path={headers}")]
    r=nvrtc.nvrtcCompileProgram(prog,len(opts),opts)
    if int(r[0]): 
        _,n=nvrtc.nvrtcGetProgramLogSize(prog); b=b' '*n; nvrtc.nvrtcGetProgramLog(prog,b); print(b.decode()[:2000]); raise SystemExit
    _,n=nvrtc.nvrtcGetCUBINSize(prog); b=b' '*n; nvrtc.nvrtcGetCUBIN(prog,b)
    open('build/flat/k.cubin','wb').write(b)
    return subprocess.run(['build/nvdisasm/nvidia/cu13/bin/nvdisasm','-hex' if 0 else '-ndf','build/flat/k.cubin'] if 0 else [NV,'build/flat/k.cubin'],capture_output=True,text=True).stdout
import glob
NV=glob.glob('build/nvdisasm/**/nvdisasm',recursive=True)[0]
def count(text):
    main=text
    c=collections.Counter()
    fn=None; per={}
    for line in text.splitlines():
        m=re.match(r'\s*\.section\s+\.text\.(\S+?),',line)
        if '.text.' in line and line.startswith('.text.'): fn=line.strip(':').strip()
        m=re.match(r'\s+/\*[0-9a-f]{4,}\*/\s+(@!?U?P\w+\s+)?([A-Z0-9_]+)(\.\S*)?',line)
        if m: c[m.group(2)]+=1
    return c
if __name__=='__main__':
    dtype,f,anyw=sys.argv[1],sys.argv[2],int(sys.argv[3]); tile=FlatTile(*map(int,sys.argv[4].split(',')))
    pr=sample_problem(f,'each',dtype,output_mode='abs' if dtype[0]=='u' else 'raw')
    v=flat_variant(pr,flat_filter(pr),tile,aligned=not anyw)
    t=sass(v); open('build/flat/k.sass','w').write(t)
    c=count(t); alu=sum(n for k,n in c.items() if k in ALU)
    rr=[int(x) for x in re.findall(r'\bR(\d+)\b',t)]; print('maxreg(REGCOUNT)',max(rr)+1,end=' ')
    print(dtype,f,anyw,tile,'total',sum(c.values()),'alu',alu,'per row alu',round(alu/tile.rows,1), dict(c.most_common(24)))
