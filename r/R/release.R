# What a release says, from its published files alone.

#' Read a release
#'
#' @param path The folder of a release, or its table: a CSV file with its certificate beside it.
#' @param verify Whether the command `keepsum` verifies it first. Without it the files are taken at their word.
#' @param ... Options of [verify()], such as `key`.
#' @return A release: the published table as a data frame (`as.data.frame`), the certificate as lists.
#' @export
read_release <- function(path, verify = TRUE, ...) {
  files <- files_of(path)
  if (verify) {
    checks <- verify(path, ...)
    if (!all(checks$passed)) {
      failed <- checks[!checks$passed, ]
      stop("The release does not verify: ", paste0(failed$check, " (", failed$words, ")", collapse = "; "), ".",
           call. = FALSE)
    }
  }
  certificate <- jsonlite::fromJSON(files$certificate, simplifyVector = FALSE, bigint_as_char = FALSE)
  if (!startsWith(as.character(certificate$schema)[1], "keepsum.certificate/")) {
    stop("The certificate must be that of a release of keepsum.", call. = FALSE)
  }
  published <- read_counts(files$table, certificate)
  drawn <- if (is.null(files$unbiased)) published else read_counts(files$unbiased, certificate)
  structure(class = "keepsum_release", list(table = published, unbiased = drawn, certificate = certificate))
}

#' The files of a release by the path of one.
#' @noRd
files_of <- function(path) {
  if (dir.exists(path)) {
    found <- list(
      table = file.path(path, "table.csv"),
      certificate = file.path(path, "certificate.json"),
      unbiased = file.path(path, "table.unbiased.csv")
    )
  } else {
    stem <- sub("\\.csv$", "", path)
    beside <- file.path(dirname(path), "certificate.json")
    in_folder <- basename(path) == "table.csv" && file.exists(beside)
    found <- list(
      table = path,
      certificate = if (in_folder) beside else paste0(stem, ".certificate.json"),
      unbiased = paste0(stem, ".unbiased.csv")
    )
  }
  for (name in c("table", "certificate")) {
    if (!file.exists(found[[name]])) {
      stop("A release must have a table in CSV and a certificate, and there is no ", basename(found[[name]]),
           ". Check the path.", call. = FALSE)
    }
  }
  if (!file.exists(found$unbiased)) {
    found$unbiased <- NULL
  }
  found
}

#' A table as a data frame with a row for each cell, labels as text; a wide table is made long.
#' @noRd
read_counts <- function(file, certificate) {
  rows <- utils::read.csv(file, check.names = FALSE, colClasses = "character", na.strings = character(),
                          encoding = "UTF-8")
  axes <- certificate$domain$axes
  names <- vapply(axes, function(axis) axis$name, "")
  count <- certificate$table$count
  if (!(count %in% names(rows) && all(names %in% names(rows)))) {
    wide <- setdiff(names, names(rows))
    labels <- if (length(wide) == 1) as.character(unlist(axes[[match(wide, names)]]$labels)) else character()
    if (!length(labels) || !all(labels %in% names(rows))) {
      stop("The table must have a column for each axis and one of counts, as its certificate says.", call. = FALSE)
    }
    long <- lapply(labels, function(label) {
      part <- rows[setdiff(names(rows), labels)]
      part[[wide]] <- rep(label, nrow(part))
      part[[count]] <- rows[[label]]
      part
    })
    rows <- do.call(rbind, long)
    rows <- rows[nzchar(rows[[count]]), , drop = FALSE] # a cell that cannot occur is empty
  }
  counts <- suppressWarnings(as.numeric(rows[[count]]))
  if (anyNA(counts) || any(counts != floor(counts)) || any(abs(counts) >= 2^53)) {
    stop("Counts must be whole numbers below 2^53, and some are not.", call. = FALSE)
  }
  rows[[count]] <- counts
  rownames(rows) <- NULL
  rows
}

#' @export
as.data.frame.keepsum_release <- function(x, ...) x$table

#' @export
print.keepsum_release <- function(x, ...) {
  loss <- x$certificate$guarantee$person$epsilon
  cat(format(nrow(x$table), big.mark = ","), " cells by ", paste(axes_of(x), collapse = ", "), "; ",
      if (is.null(loss)) "" else paste0("epsilon ", loss, " for one person, "),
      "released ", x$certificate$released, "\n", sep = "")
  print(utils::head(x$table))
  invisible(x)
}

#' @noRd
axes_of <- function(release) vapply(release$certificate$domain$axes, function(axis) axis$name, "")

#' Which cells have these labels; axes that are left out are summed over.
#' @noRd
matching <- function(release, labels) {
  chosen <- rep(TRUE, nrow(release$unbiased))
  unknown <- setdiff(names(labels), axes_of(release))
  if (length(unknown) || (length(labels) && is.null(names(labels)))) {
    stop("Labels must be those of axes: ", paste(axes_of(release), collapse = ", "), ".", call. = FALSE)
  }
  for (name in names(labels)) {
    chosen <- chosen & release$unbiased[[name]] %in% as.character(labels[[name]])
  }
  if (!any(chosen)) {
    stop("A sum must have at least one cell, and no cell has all of these labels.", call. = FALSE)
  }
  chosen
}

#' The released value of a sum of cells
#'
#' @param release A release.
#' @param labels A list of labels, such as `list(county = c("Cook", "Kane"), sex = "f")`; axes that are left out are
#'   summed over.
#' @return A number, from the table as it was drawn, which is unbiased.
#' @export
released <- function(release, labels = list()) {
  sum(release$unbiased[[release$certificate$table$count]][matching(release, labels)])
}

#' The interval of a sum of cells
#'
#' @inheritParams released
#' @param level The probability with which the interval holds the confidential value.
#' @return Its lower and its upper end.
#' @export
interval <- function(release, labels = list(), level = 0.95) {
  half <- accuracy(release, labels, level)
  released(release, labels) + c(low = -half, high = half)
}

#' The margins of a release: totals over axes, with the interval of each
#'
#' @param release A release.
#' @param axes The axes; all other axes are summed over. For the cells themselves, all axes.
#' @param level The probability with which each interval holds its confidential total.
#' @return A data frame with a row for each total, its released value, and the ends of its interval.
#' @export
margins <- function(release, axes = character(), level = 0.95) {
  if (!all(axes %in% axes_of(release))) {
    stop("Axes must be some of ", paste(axes_of(release), collapse = ", "), ".", call. = FALSE)
  }
  count <- release$certificate$table$count
  rows <- release$unbiased
  group <- groups(rows, axes)
  first <- match(unique(group), group)
  totals <- rows[first, axes, drop = FALSE]
  members <- split(seq_along(group), factor(group, unique(group)))
  values <- vapply(members, function(cells) sum(rows[[count]][cells]), 0)
  half <- vapply(members, function(cells) half_width(release, seq_along(group) %in% cells, level), 0)
  totals[[count]] <- unname(values)
  totals[[paste0(count, "_low")]] <- unname(values - half)
  totals[[paste0(count, "_high")]] <- unname(values + half)
  rownames(totals) <- NULL
  totals
}

#' The number of each row's group, by its labels on some axes.
#' @noRd
groups <- function(rows, axes) {
  if (!length(axes)) {
    return(rep(1L, nrow(rows)))
  }
  # Labels may contain anything, so they are told apart by their numbers.
  numbers <- lapply(axes, function(axis) match(rows[[axis]], unique(rows[[axis]])))
  group <- do.call(paste, numbers)
  match(group, unique(group))
}
