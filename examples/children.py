"""Plan a release of a small confidential table and draw noise that keeps its margins: `make demo` runs this."""

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

noise = plan.sample().reshape(4, 4)
print("\nOne draw of the noise, exact, from the operating system's randomness:\n")
education = table.domain.categories("education")
print(f"{'':<8}" + "".join(f"{name:>11}" for name in (*education, "Total")))
for county, row in zip(table.domain.categories("county"), noise, strict=True):
    print(f"{county:<8}" + "".join(f"{value:>11}" for value in (*row, row.sum())))
print(f"{'Total':<8}" + "".join(f"{value:>11}" for value in (*noise.sum(axis=0), noise.sum())))
