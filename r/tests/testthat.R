library(testthat)
library(keepsum)

test_check("keepsum")
