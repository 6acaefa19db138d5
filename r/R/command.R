# The command `keepsum`: releases are made and verified by it, so that there is one implementation of what protects.

#' The command, as a path: option "keepsum.command", else the one on the search path.
#' @noRd
command <- function() {
  found <- getOption("keepsum.command", unname(Sys.which("keepsum")))
  if (!nzchar(found)) {
    stop("The command keepsum must be on the search path. Install the Python package, or name the command: ",
         'options(keepsum.command = "/path/to/keepsum").', call. = FALSE)
  }
  found
}

#' Run the command with --json and return what it printed, as lists. What it refuses is an error of class
#' "keepsum_error" with the exit status, the kind of the problem and the remedy.
#' @noRd
run <- function(arguments, allowed = 0L) {
  # What R says of an exit status other than 0 is said better by the command.
  printed <- suppressWarnings(
    system2(command(), shQuote(c(arguments, "--json")), stdout = TRUE, stderr = FALSE, stdin = "")
  )
  status <- attr(printed, "status")
  status <- if (is.null(status)) 0L else as.integer(status)
  text <- paste(printed, collapse = "\n")
  result <- tryCatch(jsonlite::fromJSON(text, simplifyVector = FALSE), error = function(problem) NULL)
  if (status %in% allowed && !is.null(result)) {
    for (sentence in result$warnings) { # such as that a loss is large
      warning(sentence, call. = FALSE)
    }
    return(result)
  }
  problem <- result$error
  message <- if (is.null(problem)) {
    paste0("The command keepsum ended with status ", status, ".")
  } else {
    paste(c(problem$problem, problem$remedy$words), collapse = " ")
  }
  stop(structure(
    class = c("keepsum_error", "error", "condition"),
    list(message = message, call = NULL, status = status, kind = problem$kind, remedy = problem$remedy)
  ))
}

#' Release a table of counts
#'
#' Writes the rows to a temporary file that only this user can read, runs `keepsum release`, and reads what was released.
#'
#' @param data A data frame with a row for each cell: columns of labels, and a column of counts. The levels of a factor
#'   are its declared categories, unless there is an option that declares them; categories of other columns are taken
#'   from the data, which shows who is there.
#' @param count The name of the column of counts.
#' @param keep Totals to keep exactly, such as `c("county", "sex")`; `"county,sex"` is the table of both.
#' @param epsilon The privacy loss of one person.
#' @param output Where the release goes: a folder that does not exist, with a slash at its end, or a CSV file.
#' @param ... Other options of `keepsum release` by their names, with `_` for `-`: `categories = "domain.toml"`,
#'   `nonnegative = TRUE`, `ledger = "ledger.db"`. A vector gives an option several times.
#' @return The release, as [read_release()] returns it.
#' @export
keepsum_release <- function(data, count, keep, epsilon, output, ...) {
  if (!is.data.frame(data) || !(count %in% names(data))) {
    stop("Data must be a data frame with the column of counts.", call. = FALSE)
  }
  counts <- data[[count]]
  whole <- is.numeric(counts) && all(is.finite(counts)) && all(counts == floor(counts)) && all(abs(counts) < 2^53)
  if (!whole) {
    stop("Counts must be whole numbers, and some are not.", call. = FALSE)
  }
  data[[count]] <- format(counts, scientific = FALSE, trim = TRUE, digits = 17)
  options <- list(...)
  declared <- character()
  if (!any(c("categories", "domain", "within") %in% names(options))) {
    factors <- names(data)[vapply(data, is.factor, TRUE)]
    declared <- vapply(factors, function(name) declaration(name, levels(data[[name]])), "")
  }
  for (name in setdiff(names(data), count)) {
    data[[name]] <- as.character(data[[name]])
  }
  before <- Sys.umask("077")
  folder <- tempfile("keepsum")
  dir.create(folder)
  on.exit({
    unlink(folder, recursive = TRUE)
    Sys.umask(before)
  })
  file <- file.path(folder, "data.csv")
  utils::write.csv(data, file, row.names = FALSE, fileEncoding = "UTF-8", na = "")
  Sys.umask(before)
  given <- c(list(keep = keep, epsilon = format(epsilon, scientific = FALSE, digits = 15), output = output), options)
  if (length(declared)) {
    given$categories <- unname(declared)
  }
  run(c("release", file, "--no-spec", "--count", count, flags(given), "--yes"))
  read_release(output, verify = FALSE) # it has just been made
}

#' The categories of an axis, as --categories has them.
#' @noRd
declaration <- function(name, labels) {
  quoted <- ifelse(grepl("[^[:alnum:]_ -]", c(name, labels)), paste0('"', c(name, labels), '"'), c(name, labels))
  if (any(grepl('"', c(name, labels), fixed = TRUE))) {
    stop("Names and levels must have no double quotes. Declare the categories by domain = a file.", call. = FALSE)
  }
  paste0(quoted[1], "=", paste(quoted[-1], collapse = ","))
}

#' Options as words of the command.
#' @noRd
flags <- function(given) {
  words <- lapply(names(given), function(name) {
    option <- paste0("--", gsub("_", "-", name))
    value <- given[[name]]
    if (isTRUE(value)) {
      option
    } else if (is.null(value) || isFALSE(value)) {
      character()
    } else {
      as.vector(rbind(option, as.character(value)))
    }
  })
  unlist(words)
}

#' Verify a release
#'
#' Calls `keepsum verify`, which computes the table's hash and its kept totals again, and the guarantee from what the
#' certificate says.
#'
#' @param path The folder of a release, or its table.
#' @param ... Other options of `keepsum verify`, such as `key = "publisher.pub"`.
#' @return A data frame with a row for each check: its name, whether it passed, and words.
#' @export
verify <- function(path, ...) {
  result <- run(c("verify", path, flags(list(...))), allowed = c(0L, 1L))
  checks <- result$checks
  data.frame(
    check = vapply(checks, function(each) each$check, ""),
    passed = vapply(checks, function(each) isTRUE(each$passed), TRUE),
    words = vapply(checks, function(each) each$words, "")
  )
}
