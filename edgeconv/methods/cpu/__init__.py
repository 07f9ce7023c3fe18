"""Methods of the CPU engine: each problem becomes machine code for this processor's vectors, through LLVM."""
