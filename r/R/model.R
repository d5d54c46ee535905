# A model file as an R object: its coefficients, their errors, its guarantee.

tac_read <- function(path) {
  if (dir.exists(path)) path <- file.path(path, "model.json")
  if (!file.exists(path)) refuse("path: expected a model.json that taciturn wrote.")
  model <- tryCatch(jsonlite::fromJSON(path, simplifyVector = FALSE), error = function(e) NULL)
  if (!identical(model$format, "taciturn model") || !identical(model$version, 3L)) {
    refuse("path: expected a model.json of version 3; fit again, or read it with Python.")
  }
  structure(list(model = model), class = "tac_fit")
}

# How many units of its column one unit of a feature is, and the change that effects are for.
feature_scales <- function(model) {
  bounds <- model$bounds
  of_columns <- lapply(unlist(bounds$order), function(name) {
    column <- stated_column(bounds, name)
    number <- is_number(column)
    more <- rep(1, length(own_features(bounds, name)) - 1L)
    per <- if (number && !is.null(column$per)) column$per else 1
    data.frame(unit = c(if (number) column$upper / 2 - column$lower / 2 else 1, more), per = c(per, more))
  })
  of_terms <- lapply(unlist(bounds$terms$list), function(text) {
    ranges <- term_ranges(parse_term(text, bounds))
    data.frame(unit = vapply(ranges, function(ends) ends[2L] / 2 - ends[1L] / 2, 0), per = 1)
  })
  do.call(rbind, c(of_columns, of_terms))
}

nulls_to_na <- function(row) vapply(row, function(each) if (is.null(each)) NA_real_ else as.numeric(each), 0)

# One row for each coefficient, that of the intercept last, as tidy has them.
coefficient_table <- function(model, level = NULL) {
  values <- coefficient_rows(model)
  scales <- feature_scales(model)
  found <- model$inference
  chosen <- if (is.null(found)) which(colSums(values != 0) > 0) else unlist(found$columns) + 1L
  outputs <- if (nrow(values) == 1L) "" else as.character(unlist(model$classes))
  # With errors, classes are compared with the first one.
  rows <- if (!is.null(found) && nrow(values) > 1L) seq_len(nrow(values))[-1L] else seq_len(nrow(values))
  share <- c(scales$per[chosen] / scales$unit[chosen], 1)
  if (is.null(level)) level <- if (is.null(found)) 0.95 else found$confidence_level
  tables <- lapply(seq_along(rows), function(k) {
    estimate <- c(values[rows[k], chosen], unlist(model$intercept)[rows[k]]) * share
    error <- degrees <- allowance <- rep(NA_real_, length(estimate))
    if (!is.null(found)) {
      error <- nulls_to_na(found$std_error[[k]]) * share
      degrees <- nulls_to_na(found$degrees[[k]])
      degrees[is.na(degrees)] <- Inf
      allowance <- nulls_to_na(found$allowance[[k]]) * share
      # Without an error a coefficient is a weight of the prediction rule, and no estimate.
      estimate[is.na(error)] <- NA
    }
    reach <- qt(0.5 + level / 2, degrees) * error + allowance
    beyond <- pmax(abs(estimate) - allowance, 0)
    statistic <- ifelse(beyond == 0, 0 * error, beyond / error)
    data.frame(
      y.level = if (length(outputs) > 1L) outputs[rows[k]] else "",
      term = c(unlist(model$features)[chosen], "(Intercept)"), estimate = estimate, std.error = error,
      statistic = sign(estimate) * statistic, p.value = 2 * pt(-statistic, degrees),
      conf.low = estimate - reach, conf.high = estimate + reach, per = c(scales$per[chosen], NA)
    )
  })
  table <- do.call(rbind, tables)
  if (length(outputs) > 1L) table else table[-1L]
}

coefficient_names <- function(table) {
  if (is.null(table$y.level)) table$term else paste(table$y.level, table$term, sep = ":")
}

coef.tac_fit <- function(object, ...) {
  table <- coefficient_table(object$model)
  stats::setNames(table$estimate, coefficient_names(table))
}

confint.tac_fit <- function(object, parm, level = NULL, ...) {
  found <- object$model$inference
  if (is.null(found)) refuse("confint: expected a fit with inference = TRUE, got one without errors; fit again.")
  if (is.null(level)) level <- found$confidence_level
  table <- coefficient_table(object$model, level)
  ends <- as.matrix(table[c("conf.low", "conf.high")])
  shares <- c(0.5 - level / 2, 0.5 + level / 2)
  dimnames(ends) <- list(coefficient_names(table), paste(format(100 * shares, trim = TRUE, digits = 3), "%"))
  if (missing(parm)) ends else ends[parm, , drop = FALSE]
}

tidy.tac_fit <- function(x, conf.int = TRUE, conf.level = NULL, ...) {
  table <- coefficient_table(x$model, conf.level)
  if (!conf.int) table$conf.low <- table$conf.high <- NULL
  table
}

glance.tac_fit <- function(x, ...) {
  model <- x$model
  certificate <- model$certificate
  records <- certificate$public$records
  data.frame(
    estimator = model$estimator, epsilon = as.numeric(certificate$epsilon), delta = certificate$delta,
    relation = certificate$relation, unit = certificate$unit, status = certificate$status, seeded = certificate$seeded,
    nobs = if (is.numeric(records)) records else NA_real_,
    n.features = length(model$features), n.selected = sum(colSums(coefficient_rows(model) != 0) > 0)
  )
}

guarantee <- function(model) {
  found <- model$certificate
  whom <- if (found$unit == "person") "all rows of one person" else "one record"
  seed <- if (isTRUE(found$seeded)) "; seeded: for reproduction only" else ""
  claim <- sprintf("guarantee: epsilon = %s, delta = %s", format(found$epsilon), format(found$delta))
  sprintf("%s for %s (%s), %s%s", claim, whom, found$relation, found$status, seed)
}

print.tac_fit <- function(x, ...) {
  cat(x$model$estimator, " of ", x$model$target, "\n\n", sep = "")
  print(coef(x), ...)
  cat("\n", guarantee(x$model), "\n", sep = "")
  invisible(x)
}

summary.tac_fit <- function(object, ...) {
  structure(list(model = object$model, coefficients = tidy(object)), class = "summary.tac_fit")
}

print.summary.tac_fit <- function(x, digits = 4L, ...) {
  found <- x$model$inference
  cat(x$model$estimator, " of ", x$model$target, "\n\n", sep = "")
  print(x$coefficients, digits = digits, row.names = FALSE, ...)
  said <- "These are the weights of a prediction rule, without standard errors."
  errors <- "The %g%% intervals include the sampling error and the noise for privacy."
  if (!is.null(found)) said <- sprintf(errors, 100 * found$confidence_level)
  cat("\n", paste0(c(said, found$reason, guarantee(x$model)), "\n"), sep = "")
  invisible(x)
}
