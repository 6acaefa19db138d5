# tests/test_r.py of the Python package makes the releases, and says what it computes of them.
files <- Sys.getenv("KEEPSUM_R_FILES")
expected <- function() jsonlite::fromJSON(file.path(files, "expected.json"), simplifyVector = FALSE)

test_that("margins, intervals and probabilities are those of Python", {
  skip_if(files == "", "tests/test_r.py makes the releases")
  for (name in names(expected())) {
    release <- read_release(file.path(files, name), verify = FALSE)
    for (case in expected()[[name]]) {
      labels <- lapply(case$labels, unlist)
      expect_equal(released(release, labels), case$released, info = name)
      expect_equal(unname(interval(release, labels)), unlist(case$interval), info = name)
      expect_equal(accuracy(release, labels, 0.5), case$half, info = name)
      expect_equal(noise_pmf(release, 0:3, labels), unlist(case$pmf), tolerance = 1e-9, info = name)
    }
  }
})

test_that("totals of axes are those of Python", {
  skip_if(files == "", "tests/test_r.py makes the releases")
  release <- read_release(file.path(files, "counties"), verify = FALSE)
  by_sex <- margins(release, "sex")
  expect_equal(names(by_sex), c("sex", "n", "n_low", "n_high"))
  for (row in seq_len(nrow(by_sex))) {
    ends <- interval(release, list(sex = by_sex$sex[row]))
    expect_equal(c(by_sex$n_low[row], by_sex$n_high[row]), unname(ends))
  }
  kept <- margins(release, "county")
  expect_equal(kept$n, kept$n_low)
  expect_equal(kept$n, kept$n_high)
  expect_equal(nrow(margins(release)), 1L)
  expect_equal(nrow(margins(release, c("county", "sex"))), nrow(as.data.frame(release)))
})

test_that("what is not computed is refused, with the way there is", {
  skip_if(files == "", "tests/test_r.py makes the releases")
  release <- read_release(file.path(files, "overlapping"), verify = FALSE)
  expect_error(accuracy(release, list(sex = "f")), "overlap.*keepsum marginal")
  release <- read_release(file.path(files, "focused"), verify = FALSE)
  expect_error(accuracy(release), "focus.*keepsum marginal")
})

test_that("wrong questions have an answer", {
  skip_if(files == "", "tests/test_r.py makes the releases")
  release <- read_release(file.path(files, "counties"), verify = FALSE)
  expect_error(released(release, list(age = "young")), "county, sex")
  expect_error(released(release, list(sex = "x")), "no cell")
  expect_error(margins(release, "age"), "county, sex")
  expect_error(interval(release, level = 1), "Level")
  expect_error(read_release(file.path(files, "nothing")), "there is no")
  expect_output(print(release), "cells by county, sex; epsilon 1 for one person")
})

test_that("a release is made, verified and read, and a change is found", {
  skip_if(files == "", "tests/test_r.py makes the releases")
  folder <- tempfile("release")
  data <- data.frame(county = c("Älpha", "Älpha", "Be,ta", "Be,ta"), sex = c("f", "m", "f", "m"),
                     n = c(100000, 250, 33, 8))
  expect_warning(keepsum_release(data, "n", "county", 1, paste0(tempfile(), "/")), "taken from the data")
  data$county <- factor(data$county, c("Be,ta", "Älpha", "nobody's: town"))
  data$sex <- factor(data$sex)
  release <- keepsum_release(data, "n", "county", 1, paste0(folder, "/"))
  expect_equal(unique(as.data.frame(release)$county), levels(data$county))
  expect_equal(released(release, list(county = "Älpha")), 100250)
  expect_true(all(verify(folder)$passed))
  expect_equal(released(read_release(folder), list(county = "Be,ta")), 41)
  refused <- tryCatch(keepsum_release(data, "n", "county", 1, paste0(folder, "/")), error = identity)
  expect_s3_class(refused, "keepsum_error")
  expect_equal(refused$status, 6L)
  refused <- tryCatch(keepsum_release(data, "n", "region", 1, paste0(tempfile(), "/")), error = identity)
  expect_equal(refused$status, 2L)
  expect_match(conditionMessage(refused), "region")
  table <- file.path(folder, "table.csv")
  writeLines(sub("^(.*),([0-9-]+)$", "\\1,77", readLines(table)), table)
  expect_false(all(verify(folder)$passed))
  expect_error(read_release(folder), "does not verify")
  expect_warning(keepsum_release(data, "n", "county", 50, paste0(tempfile(), "/")), "above 10")
  data$n[1] <- 0.5
  expect_error(keepsum_release(data, "n", "county", 1, paste0(tempfile(), "/")), "whole numbers")
})
