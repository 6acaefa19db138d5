"""Real tables with the same kept totals, by integer programming: an outside check of one person's distances.

It knows the definition and nothing of how Keepsum plans: `systems` are axes, structural zeros and kept totals,
`nearest` is the nearest real table in which somebody has another value, `kinds` are random systems and tables, and
`comparison` compares what is found with what a plan states. `make fibres` runs 10,000 of them.
"""
