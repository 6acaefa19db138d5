# The distribution of the noise, from the certificate. It depends on nothing that is confidential.
#
# The kept totals of a hierarchy divide the cells into regions, whose noise adds up to 0; cells under no total are
# independent. Of a region of n cells, the sum of k has the distribution
#
#     P(X = x) = P(S_k = x) P(S_{n-k} = -x) / P(S_n = 0),
#
# S_m being the sum of m independent cells; its probabilities are the Fourier transform of a power.

ROUNDING <- 1e-12 # by which a probability must be above a level, so that rounding makes no interval too short
known <- new.env() # distributions that were computed before, by what they are made of
LARGEST <- 2^22 # points of a transform

#' The probabilities of the noise of one free cell over 0, 1, ..., N - 1, negative values counted from the end.
#' @noRd
one_cell <- function(release, points) {
  z <- c(0:(points / 2), -((points / 2 - 1):1))
  noise <- noise_of(release)
  logs <- if (noise$kind == "laplace") -noise$parameter * abs(z) else -z^2 / (2 * noise$parameter^2)
  weights <- exp(logs)
  weights / sum(weights)
}

#' The kind of noise, with its epsilon or sigma per unit of distance; an error where this package cannot compute.
#' @noRd
noise_of <- function(release) {
  mechanism <- release$certificate$mechanism
  kind <- paste(mechanism$name, mechanism$norm)
  if (length(mechanism$focus) || !(kind %in% c("laplace l1", "gaussian l2"))) {
    elsewhere("Noise with a focus, in the l2 norm or of the publisher's own")
  }
  parameter <- if (mechanism$name == "laplace") mechanism$parameters$epsilon else mechanism$parameters$sigma
  parts <- as.numeric(strsplit(as.character(parameter), "/")[[1]])
  list(kind = mechanism$name, parameter = if (length(parts) == 2) parts[1] / parts[2] else parts)
}

#' @noRd
elsewhere <- function(what) {
  stop(what, " is not computed in R. Use `keepsum marginal RELEASE --axes ... --intervals -o sums.csv`.",
       call. = FALSE)
}

#' The number of each cell's region; 0 for cells under no kept total.
#' @noRd
regions <- function(release) {
  kept <- release$certificate$kept$parts
  if (!all(vapply(kept, function(part) part$kind == "margin", TRUE))) {
    elsewhere("The noise under totals other than margins")
  }
  rows <- release$unbiased
  if (!length(kept)) {
    return(rep(0L, nrow(rows)))
  }
  sets <- lapply(kept, function(part) unlist(part$axes))
  finest <- sets[[which.max(lengths(sets))]]
  if (!all(vapply(sets, function(axes) all(axes %in% finest), TRUE))) {
    elsewhere("The noise under totals that overlap")
  }
  groups(rows, finest)
}

#' Half the width of an interval around a sum of cells, given as a logical vector.
#' @noRd
half_width <- function(release, chosen, level) {
  if (!is.numeric(level) || length(level) != 1 || !(level > 0 && level < 1 - 1e-9)) {
    stop("Level must be a number above 0 and below 1 - 1e-9.", call. = FALSE)
  }
  pmf <- noise_pmf_of(release, chosen)
  half <- length(pmf) %/% 2
  both <- c(pmf[1], pmf[2:half] + pmf[length(pmf):(length(pmf) - half + 2)])
  unname(which(cumsum(both) >= level + ROUNDING)[1] - 1)
}

#' The half width of the interval of a sum of cells
#'
#' @inheritParams interval
#' @return A whole number: the noise is at most this with at least this probability. It is 0 for a kept total.
#' @export
accuracy <- function(release, labels = list(), level = 0.95) {
  half_width(release, matching(release, labels), level)
}

#' The distribution of the noise in a sum of cells
#'
#' @inheritParams released
#' @param at Whole numbers.
#' @return The probability of each.
#' @export
noise_pmf <- function(release, at, labels = list()) {
  pmf <- noise_pmf_of(release, matching(release, labels))
  inside <- abs(at) < length(pmf) / 2
  found <- numeric(length(at))
  found[inside] <- pmf[at[inside] %% length(pmf) + 1]
  found
}

#' The probabilities of the noise of a sum of cells over 0, 1, ..., N - 1, negative values counted from the end.
#' @noRd
noise_pmf_of <- function(release, chosen) {
  region <- regions(release)
  noise <- noise_of(release)
  free <- sum(chosen & region == 0)
  sizes <- tabulate(region)
  taken <- tabulate(region[chosen], length(sizes))
  some <- which(taken > 0 & taken < sizes)
  pieces <- as.data.frame(table(k = pmin(taken, sizes - taken)[some], n = sizes[some]), stringsAsFactors = FALSE)
  pieces <- pieces[pieces$Freq > 0, , drop = FALSE]
  k <- as.integer(pieces$k)
  n <- as.integer(pieces$n)
  most <- max(1, free, n, free + sum(k * pieces$Freq))
  p <- exp(-noise$parameter)
  deviation <- if (noise$kind == "laplace") sqrt(2 * p) / (1 - p) else noise$parameter
  tail <- if (noise$kind == "laplace") 40 / noise$parameter else 0
  key <- paste(c(noise$kind, format(noise$parameter, digits = 17), free, k, n, pieces$Freq), collapse = " ")
  if (!is.null(known[[key]])) {
    return(known[[key]])
  }
  points <- 2^ceiling(log2(2 * (12 * deviation * sqrt(most) + tail) + 64))
  if (points > LARGEST) {
    elsewhere("Noise as wide as this")
  }
  transform <- Re(stats::fft(one_cell(release, points)))
  product <- transform^free
  for (row in seq_along(k)) {
    product <- product * piece_transform(transform, k[row], n[row])^pieces$Freq[row]
  }
  pmf <- pmax(Re(stats::fft(product, inverse = TRUE)) / points, 0)
  pmf <- pmf / sum(pmf)
  assign(key, pmf, envir = known)
  pmf
}

#' The transform of the noise of k of the n cells of a region, whose noise adds up to 0.
#' @noRd
piece_transform <- function(transform, k, n) {
  points <- length(transform)
  one <- pmax(Re(stats::fft(transform^k, inverse = TRUE)), 0)
  other <- pmax(Re(stats::fft(transform^(n - k), inverse = TRUE)), 0)
  both <- one * other / max(one * other) # symmetric, so that -x needs no turning round
  Re(stats::fft(both / sum(both)))
}
