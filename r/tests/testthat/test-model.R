# A model by hand: log-odds 0.5 + 2 u + s - (r = south), with u = (age - 59) / 41.
write_model <- function(changes = list(), bounds = list()) {
  columns <- list(
    age = list(type = "number", lower = 18, upper = 100), smoker = list(type = "boolean"),
    region = list(type = "category", categories = list("north", "south"))
  )
  stated <- list(
    target = list(name = "ill", classes = list("no", "yes")), columns = columns,
    missing = list(smoker = TRUE), order = list("age", "smoker", "region")
  )
  model <- list(
    format = "taciturn model", version = 3L, task = "classify", target = "ill",
    bounds = utils::modifyList(stated, bounds), features = list("age", "smoker", "region=north", "region=south"),
    estimator = "SparseClassifier", parameters = list(),
    coefficients = list(list(2, 1, 0, -1)), intercept = list(0.5), classes = list("no", "yes"), inference = NULL,
    certificate = list(epsilon = 1, delta = 1e-6, relation = "zero-out", unit = "record", status = "proved", seeded = FALSE,
                       public = list(records = 400L))
  )
  path <- tempfile(fileext = ".json")
  writeLines(jsonlite::toJSON(utils::modifyList(model, changes), auto_unbox = TRUE, null = "null", digits = NA), path)
  path
}

people <- data.frame(age = c(59, 100, 200, 18), smoker = c("no", "Yes", NA, "0"), region = factor(c("south", "north", "moon", "north")))

test_that("predictions are those of the formula", {
  fit <- tac_read(write_model())
  link <- c(0.5 - 1, 0.5 + 2 + 1, 0.5 + 2 + 1, 0.5 - 2)
  expect_equal(predict(fit, people, type = "link"), link, tolerance = 1e-14)
  expect_equal(predict(fit, people), 1 / (1 + exp(-link)), tolerance = 1e-14)
  expect_equal(predict(fit, people, type = "class"), c("no", "yes", "yes", "no"))
})

test_that("coefficients are per unit of their column", {
  fit <- tac_read(write_model())
  expect_equal(coef(fit), c(age = 2 / 41, smoker = 1, "region=south" = -1, "(Intercept)" = 0.5))
  expect_equal(tidy(fit)$term, names(coef(fit)))
  expect_true(all(is.na(tidy(fit)$std.error)))
  expect_error(confint(fit), "inference = TRUE")
  expect_equal(glance(fit)[c("epsilon", "nobs", "n.selected")], data.frame(epsilon = 1, nobs = 400, n.selected = 3L))
  expect_output(print(fit), "epsilon = 1, delta = 1e-06 for one record")
  expect_output(print(summary(fit)), "without standard errors")
})

test_that("intervals use Student's quantile and the allowance", {
  errors <- list(columns = list(0L, 3L), std_error = list(list(0.5, NULL, 0.1)), degrees = list(list(10, NULL, NULL)),
                 allowance = list(list(0.2, NULL, 0)), confidence_level = 0.9, reason = NULL)
  fit <- tac_read(write_model(list(inference = errors)))
  reach <- (qt(0.95, 10) * 0.5 + 0.2) / 41
  expect_equal(unname(confint(fit)["age", ]), 2 / 41 + c(-reach, reach))
  expect_true(is.na(coef(fit)[["region=south"]]))
  expect_equal(tidy(fit)$p.value[1], 2 * pt(-(2 - 0.2) / 0.5, 10))
})

test_that("what R cannot encode is refused, and no sentence holds a cell", {
  fit <- tac_read(write_model())
  secret <- transform(people, age = NA_real_, region = "SECRET")
  said <- tryCatch(predict(fit, secret), error = conditionMessage)
  expect_match(said, 'column "age": expected a value in every row')
  said <- c(said, tryCatch(predict(fit, transform(people, smoker = "SECRET")), error = conditionMessage))
  said <- c(said, tryCatch(predict(fit, transform(people, age = "SECRET")), error = conditionMessage))
  expect_false(any(grepl("SECRET", said)))
  expect_match(said[2:3], 'column "(smoker|age)": expected')
  expect_error(predict(fit, people["age"]), 'expected a column "smoker"')
  dates <- tac_read(write_model(bounds = list(columns = list(age = list(type = "date")))))
  expect_error(predict(dates, people), "dates, such as \"age\", are not supported in R")
  expect_equal(coef(dates)[["age"]], 2 / 41)
  rules <- tac_read(write_model(bounds = list(columns = list(age = list(censored = TRUE)))))
  expect_error(predict(rules, people), "not supported in R")
  expect_error(tac_read(write_model(list(version = 9L))), "version 3")
})
