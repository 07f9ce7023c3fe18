from edgeconv.methods.cuda.flat_rows import FlatPlan, flat_filter
def make(problem, options):
    return FlatPlan(problem, filter=flat_filter(problem))
