"""Plan the release of a small confidential table with its margins kept: `make demo` runs this."""

import keepsum as ks

# Delinquent children by county and education of the head of household: a fictitious table of the US Federal
# Committee on Statistical Methodology (2005), as in the paper, with county Gamma's total corrected to 25.
table = ks.Table.from_array(
    [[15, 1, 3, 1], [20, 10, 10, 15], [3, 10, 10, 2], [12, 14, 7, 2]],
    axes={"county": ["Alpha", "Beta", "Gamma", "Delta"], "education": ["Low", "Medium", "High", "Very High"]},
)
keep = table.keep("county", "education", total=True)
plan = ks.plan(keep, ks.Laplace(epsilon=0.25))
print(plan.explain())
