bounds <- list(
  target = list(classes = c("no", "yes")),
  columns = list(age = list(type = "number", lower = 0, upper = 100), dose = list(type = "number", lower = -1, upper = 1),
                 "a \"b\"" = list(type = "category", categories = "only"))
)
patients <- data.frame(age = (1:400) / 4, dose = rep(c(-0.5, 0.25), 200), ill = ifelse(1:400 > 200, "yes", "no"))
patients[['a "b"']] <- "only"

# A command that notes what it was given: R or a shell in place of taciturn.
fake <- function(folder, script) {
  path <- file.path(folder, "fake")
  writeLines(c("#!/bin/sh", script), path)
  Sys.chmod(path, "0755")
  path
}

with_command <- function(script, code) {
  folder <- tempfile()
  dir.create(folder)
  before <- options(taciturn.command = fake(folder, gsub("HERE", folder, script, fixed = TRUE)))
  on.exit({
    options(before)
    unlink(folder, recursive = TRUE)
  })
  code(folder)
}

test_that("the data frame is in a private folder, which is removed after an error too", {
  skip_on_os("windows")
  script <- 'cp "$2" HERE/table.csv; cp "$4" HERE/bounds.toml; stat -c "%a %n" "$(dirname "$2")" "$2" > HERE/modes; echo "taciturn: no." >&2; echo SECRET >&2; exit 1'
  with_command(script, function(folder) {
    said <- tryCatch(tac_fit(ill ~ age, patients, bounds, 1, "binomial"), error = conditionMessage)
    expect_equal(said, "taciturn: no.")
    modes <- strsplit(readLines(file.path(folder, "modes")), " ")
    expect_equal(vapply(modes, `[`, "", 1L), c("700", "600"))
    expect_false(any(file.exists(vapply(modes, `[`, "", 2L))))
    expect_equal(read.csv(file.path(folder, "table.csv"), check.names = FALSE), patients)
    expect_match(paste(readLines(file.path(folder, "bounds.toml")), collapse = "\n"), '"a \\"b\\"" = {"type" = "category", "categories" = ["only"]}', fixed = TRUE)
  })
})

test_that("mistakes are refused before the command runs", {
  expect_error(tac_fit(~age, patients, bounds, 1, "binomial"), "expected a response")
  expect_error(tac_fit(ill ~ I(age^2), patients, bounds, 1, "binomial"), "state powers and products")
  expect_error(tac_fit(ill ~ ., patients, bounds, 1, poisson(link = "sqrt")), 'expected the link "log"')
  expect_error(tac_fit(ill ~ ., patients, bounds, Inf, "binomial"), "finite number")
  path <- tempfile(fileext = ".toml")
  writeLines('target = {name = "ill", kind = "count", lower = 0, upper = 9}', path)
  expect_error(tac_fit(ill ~ ., patients, path, 1, "gaussian"), "the one that the bounds state by kind")
})

test_that("a fit is that of the command", {
  skip_if(Sys.getenv("TACITURN_COMMAND") == "", "no command: TACITURN_COMMAND names none")
  before <- options(taciturn.command = Sys.getenv("TACITURN_COMMAND"))
  on.exit(options(before))
  fit <- suppressMessages(tac_fit(ill ~ ., patients, bounds, 20, "binomial", seed = 1, inference = FALSE))
  expect_s3_class(fit, "tac_fit")
  expect_equal(glance(fit)$epsilon, 20)
  expect_gt(mean(predict(fit, patients, type = "class") == patients$ill), 0.9)
  said <- tryCatch(tac_fit(ill ~ ., patients, within(bounds, columns$age <- NULL), 20, "binomial"), error = conditionMessage)
  expect_match(said, "^taciturn: ")
})
