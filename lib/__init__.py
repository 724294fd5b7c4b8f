"""The library behind the book *Racing to Simplicity*.

The science, in the order in which its folders may import each other:

    linear      deep linear networks: closed forms of their modes, chains of matrices, descent, random draws
    data        the papers' synthetic tasks and the real images
    complexity  how complex is a function? Fourier, cosine, polynomials, Lempel-Ziv, effective rank
    gated       gated deep linear networks on any graph: paths, effective datasets, race reduction, routing
    relu        ReLU networks from small weights: gates, contexts, separability, early linearisation
    redshift    random, trained, painting and writing networks, and their infinite-width limit
    biases      frozen random weights with learned biases or masks, the recurrent variant, the theory

What every page imports: `claims` (statements and verdicts) and `plots` (one figure style); both read files with `files`.
`book` finds, executes, runs and counts pages; no page imports it.
"""
