# Small tables of numbers through the statistics of R, kept in values.json beside this file.
#
#     Rscript tests/golden/stats/values.R [FILE]
#
# tests/stats/test_r.py compares Fabula with the kept values, and runs this script again where R and
# the packages below are installed. On Debian 12:
#
#     apt-get install --no-install-recommends r-base-core r-cran-jsonlite r-cran-boot r-cran-coin
#         r-cran-exactranktests r-cran-metafor r-cran-survey r-cran-psych r-cran-vcd
#         r-cran-proc r-cran-bradleyterry2 r-cran-clubsandwich
#
# Each case has a name, its data and what R makes of them. A value that R leaves undefined (NaN, NA)
# is null. Values that R draws at random are of the seed 1.

packages <- c("jsonlite", "boot", "coin", "exactRankTests", "metafor", "survey", "psych", "vcd",
              "pROC", "BradleyTerry2", "clubSandwich")
for (name in packages) suppressPackageStartupMessages(suppressWarnings(requireNamespace(name)))
options(warn = -1)
RNGversion("4.0.0")

cases <- list()
keep <- function(name, data, result) cases[[name]] <<- list(data = data, result = result)
# A vector that is a list in the file even where it has one element.
row <- function(...) I(c(...))
rows_of <- function(table) lapply(seq_len(nrow(table)), function(k) row(table[k, ]))
# Numbers without ties, with many, skewed ones, and a constant.
distinct_a <- c(3.1, 4.7, 2.2, 5.9, 6.3, 4.1, 7.8, 5.2)
distinct_b <- c(2.9, 1.4, 3.6, 4.4, 0.8)
tied_a <- c(3, 4, 4, 5, 2, 4, 3, 5, 5, 4, 3, 2)
tied_b <- c(2, 3, 3, 1, 4, 2, 2, 3, 1, 3)
skewed_a <- c(0.2, 0.3, 0.1, 4.8, 0.5, 0.4, 9.1, 0.2, 1.3, 0.6, 0.3, 2.7, 0.9, 0.1)
skewed_b <- c(0.4, 0.1, 0.2, 0.9, 0.3, 2.2, 0.1, 0.5, 0.2, 0.7, 0.3)
many_a <- ((1:30) * 37) %% 101 / 10
many_b <- ((1:25) * 29) %% 89 / 10 + 0.05

# --- Mann and Whitney ------------------------------------------------------------------------------
# exact: where there is no tie and a group of at most eight, as SciPy decides it. R would compute
# exact values up to 50.
rank_test <- function(name, a, b, exact) {
  found <- wilcox.test(a, b, exact = exact, correct = TRUE)
  keep(paste("mann-whitney", name), list(a = row(a), b = row(b)),
       list(u = unname(found$statistic), p = found$p.value))
}
rank_test("exact", distinct_a, distinct_b, TRUE)
rank_test("apart", c(1, 2, 3), c(4, 5, 6, 7), TRUE)
rank_test("one each", 2, 1, TRUE)
rank_test("large", many_a, many_b, FALSE)
rank_test("ties", tied_a, tied_b, FALSE)
rank_test("few with ties", c(1, 2, 2), c(2, 3), FALSE)
rank_test("all equal", c(2, 2, 2), c(2, 2), FALSE)

# --- Kruskal and Wallis ----------------------------------------------------------------------------
groups_of <- list(
  distinct = list(distinct_a, distinct_b, many_a[1:9]),
  ties = list(tied_a, tied_b, c(3, 3, 3, 4)),
  two = list(tied_a, tied_b),
  single = list(5, tied_a, c(1, 9)),
  equal = list(c(2, 2), 2, c(2, 2, 2))
)
for (name in names(groups_of)) {
  found <- kruskal.test(groups_of[[name]])
  keep(paste("kruskal-wallis", name), list(groups = lapply(groups_of[[name]], row)),
       list(h = unname(found$statistic), p = found$p.value))
}

# --- Corrections for several tests -----------------------------------------------------------------
ps <- list(some = c(0.01, 0.04, 0.03, 0.005), ties = c(0.02, 0.02, 0.5, 0.02, 1),
           missing = c(0.3, NA, 0.001, NA, 0.04), one = 0.2)
for (name in names(ps)) {
  keep(paste("p.adjust", name), list(p = row(ps[[name]])),
       list(holm = row(p.adjust(ps[[name]], "holm")),
            bonferroni = row(p.adjust(ps[[name]], "bonferroni"))))
}

# --- Cohen's d -------------------------------------------------------------------------------------
pairs_b <- c(skewed_b, 0.6, 0.2, 1.9)
student <- t.test(skewed_a, pairs_b, var.equal = TRUE)
keep("d by t", list(a = row(skewed_a), b = row(pairs_b)),
     list(d = unname(student$statistic) * sqrt(2 / length(skewed_a))))

# --- Permutations ----------------------------------------------------------------------------------
# A row a cluster, a column a group. F is that of values less the mean of their cluster.
paired <- function(name, table) {
  values <- c(table)
  cluster <- factor(rep(seq_len(nrow(table)), ncol(table)))
  group <- factor(rep(seq_len(ncol(table)), each = nrow(table)))
  f <- summary(aov(I(values - ave(values, cluster)) ~ group))[[1]][["F value"]][1]
  how <- if (ncol(table) == 2) coin::exact() else coin::approximate(nresample = 100000)
  found <- coin::oneway_test(values ~ group | cluster, distribution = how)
  keep(paste("permutation paired", name), list(table = rows_of(table)),
       list(f = f, p = as.numeric(coin::pvalue(found))))
}
two <- cbind(c(5, 3, 4, 6, 2, 5, 4, 3, 6, 5, 4, 2), c(4, 3, 2, 5, 3, 3, 4, 1, 4, 5, 2, 3))
paired("ties", two)
paired("three", cbind(two, c(4, 2, 4, 4, 2, 3, 5, 2, 4, 3, 3, 3)))
signs <- exactRankTests::perm.test(two[, 1], two[, 2], paired = TRUE, exact = TRUE)
keep("sign flips", list(a = row(two[, 1]), b = row(two[, 2])), list(p = signs$p.value))
# Items of a cluster are swapped together: the signs of the sums of a cluster are flipped.
members <- c(1, 1, 2, 3, 3, 3, 4, 5, 6, 6, 7, 8)
sums <- tapply(two[, 1] - two[, 2], members, sum)
signs <- exactRankTests::perm.test(c(sums), rep(0, length(sums)), paired = TRUE, exact = TRUE)
keep("sign flips of clusters", list(a = row(two[, 1]), b = row(two[, 2]), cluster = row(members)),
     list(p = signs$p.value))
found <- coin::oneway_test(c(two) ~ factor(rep(1:2, each = 12)), distribution = coin::exact())
keep("two samples", list(a = row(two[, 1]), b = row(two[, 2])),
     list(p = as.numeric(coin::pvalue(found))))

# --- Association within strata ---------------------------------------------------------------------
x <- c(1, 4, 2, 6, 3, 5, 2, 8, 7, 3, 9, 4, 6, 1, 5, 7, 2, 3)
y <- c(2, 3, 2, 5, 4, 4, 1, 6, 7, 3, 7, 5, 4, 2, 3, 6, 3, 2)
stratum <- c(1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 4)
cluster <- c(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 1, 3, 5, 7, 9, 11)
of_strata <- function(x, y, stratum) {
  inner_x <- resid(lm(x ~ factor(stratum)))
  inner_y <- resid(lm(y ~ factor(stratum)))
  c(slope = unname(coef(lm(y ~ x + factor(stratum)))["x"]), correlation = cor(inner_x, inner_y))
}
of_all <- of_strata(x, y, stratum)
keep("association", list(x = row(x), y = row(y), strata = row(stratum), clusters = row(cluster)),
     list(slope = unname(of_all["slope"]), correlation = unname(of_all["correlation"])))
# Yes of two groups in three strata: the difference of Mantel and Haenszel.
tables <- data.frame(ai = c(8, 5, 3), n1i = c(12, 9, 10), ci = c(4, 6, 1), n2i = c(11, 14, 5))
found <- metafor::rma.mh(ai = ai, n1i = n1i, ci = ci, n2i = n2i, measure = "RD", data = tables,
                         correct = FALSE)
keep("mantel-haenszel difference", as.list(tables), list(slope = as.numeric(found$beta)))

# --- Bounds of shares ------------------------------------------------------------------------------
for (counts in list(c(0, 20), c(3, 40), c(19, 20), c(20, 20), c(1, 1))) {
  keep(paste("clopper-pearson", counts[1], "of", counts[2]),
       list(hits = counts[1], n = counts[2]),
       list(high = binom.test(counts[1], counts[2], alternative = "less")$conf.int[2]))
}

# --- Tests of phrases by text ----------------------------------------------------------------------
# A row a stratum: texts, those of group A, those that hold the phrase, those of A that hold it.
strata_of <- list(one = rbind(c(20, 9, 8, 7)), skewed = rbind(c(12, 4, 3, 2)),
                  several = rbind(c(12, 5, 4, 3), c(9, 4, 5, 3), c(10, 2, 3, 1)),
                  fixed = rbind(c(12, 5, 4, 3), c(6, 6, 2, 2), c(7, 3, 7, 3)),
                  middle = rbind(c(8, 4, 4, 2)), none = rbind(c(5, 2, 0, 0)))
for (name in names(strata_of)) {
  rows <- strata_of[[name]]
  holds <- in_a <- which <- c()
  for (k in seq_len(nrow(rows))) {
    n <- rows[k, 1]; n_a <- rows[k, 2]; n_holds <- rows[k, 3]; n_both <- rows[k, 4]
    in_a <- c(in_a, rep(c(1, 0), c(n_a, n - n_a)))
    holds <- c(holds, rep(c(1, 0), c(n_both, n_a - n_both)),
               rep(c(1, 0), c(n_holds - n_both, n - n_a - n_holds + n_both)))
    which <- c(which, rep(k, n))
  }
  frame <- data.frame(holds = holds, in_a = factor(in_a), which = factor(which))
  formula <- if (nrow(rows) > 1) holds ~ in_a | which else holds ~ in_a
  found <- if (var(holds) == 0) NA else {
    as.numeric(coin::pvalue(coin::oneway_test(formula, frame, distribution = "exact")))
  }
  ends <- apply(rows, 1, function(s) c(
    dhyper(max(0, s[2] + s[3] - s[1]), s[3], s[1] - s[3], s[2], log = TRUE),
    dhyper(min(s[2], s[3]), s[3], s[1] - s[3], s[2], log = TRUE)))
  fisher <- if (nrow(rows) == 1 && var(holds) > 0) {
    fisher.test(table(factor(in_a, c(1, 0)), factor(holds, c(1, 0))))$p.value
  } else NA
  keep(paste("phrase", name), list(strata = rows_of(rows)),
       list(p = found, smallest = exp(min(rowSums(ends))), fisher = fisher))
}

# --- Ratios of types to tokens ---------------------------------------------------------------------
texts <- list(c(1, 2, 3, 1), c(2, 4, 5), c(1, 1, 6, 7, 2), c(8, 2, 3), c(9, 1, 4, 4), c(2, 2, 10),
              c(1, 11, 3, 5), c(12, 2, 6), c(1, 3, 13, 2, 2), c(14, 1), c(2, 5, 15), c(3, 1, 4, 16))
of_types <- function(texts, i) length(unique(unlist(texts[i]))) / length(unlist(texts[i]))
# The jackknife's variance, of the package boot's influence values.
influence <- boot::empinf(data = texts, statistic = of_types, type = "jack", stype = "i")
n <- length(texts)
error <- sqrt(sum((influence - mean(influence))^2) / (n * (n - 1)))
ratio <- of_types(texts, seq_along(texts))
keep("ratio of types", list(texts = lapply(texts, row)),
     list(value = ratio, ends = ratio + c(-1, 1) * qt(0.975, n - 1) * error))

# --- Bradley and Terry -----------------------------------------------------------------------------
# A row an order of two things: first, second, how often shown, how often the first was preferred;
# ties count half.
games <- rbind(
  c(0, 1, 4, 3), c(1, 0, 4, 1.5), c(0, 2, 3, 2), c(2, 0, 3, 1), c(0, 3, 4, 3.5), c(3, 0, 2, 0.5),
  c(0, 4, 3, 2), c(1, 2, 4, 2.5), c(2, 1, 4, 2), c(1, 3, 3, 2), c(3, 1, 3, 1), c(1, 4, 4, 3),
  c(4, 1, 2, 1.5), c(2, 3, 4, 2.5), c(3, 2, 3, 2), c(2, 4, 3, 2), c(4, 2, 3, 1), c(3, 4, 4, 2.5),
  c(4, 3, 3, 1.5))
shown <- data.frame(win = games[, 4], loss = games[, 3] - games[, 4])
shown$one <- data.frame(thing = factor(games[, 1], 0:4), first = 1)
shown$other <- data.frame(thing = factor(games[, 2], 0:4), first = 0)
found <- BradleyTerry2::BTm(cbind(win, loss), one, other, ~ thing + first, id = "thing",
                            data = shown)
coefs <- coef(found)
strengths <- c(0, unname(coefs[paste0("thing", 1:4)]))
# Errors by pair: CR3 of clubSandwich, on the same model as a logistic regression.
design <- matrix(0, nrow(games), 5)
design[cbind(seq_len(nrow(games)), games[, 1] + 1)] <- 1
design[cbind(seq_len(nrow(games)), games[, 2] + 1)] <- -1
design <- cbind(design[, -1], first = 1)
regression <- glm(cbind(shown$win, shown$loss) ~ 0 + design, family = quasibinomial,
                  control = glm.control(epsilon = 1e-14))
pair <- pmin(games[, 1], games[, 2]) * 10 + pmax(games[, 1], games[, 2])
covariance <- clubSandwich::vcovCR(regression, cluster = pair, type = "CR3")
centring <- rbind(cbind(rbind(0, diag(4)) - matrix(1, 5, 4) / 5, 0), c(0, 0, 0, 0, 1))
keep("bradley-terry", list(games = rows_of(games)),
     list(strengths = strengths - mean(strengths), place = unname(coefs["first"]),
          n_pairs = length(unique(pair)), cr3 = sqrt(diag(
            centring %*% as.matrix(covariance) %*% t(centring)))))

# --- Agreement -------------------------------------------------------------------------------------
one <- c(1, 2, 3, 3, 2, 1, 4, 1, 2, 3, 4, 4, 2, 1, 3, 2)
other <- c(1, 2, 2, 3, 2, 1, 3, 2, 2, 3, 4, 3, 1, 1, 4, 2)
kappas <- function(name, a, b) {
  levels <- sort(unique(c(a, b)))
  table <- table(factor(a, levels), factor(b, levels))
  unweighted <- vcd::Kappa(table)$Unweighted[["value"]]
  quadratic <- vcd::Kappa(table, weights = "Fleiss-Cohen")$Weighted[["value"]]
  keep(paste("kappa", name), list(a = row(a), b = row(b)),
       list(kappa = unweighted, quadratic = quadratic, pearson = cor(a, b),
            spearman = cor(a, b, method = "spearman")))
}
kappas("four values", one, other)
kappas("two values", as.numeric(one > 2), as.numeric(other > 2))
kappas("value of one rater", c(1, 2, 3, 1, 2, 1), c(1, 2, 2, 1, 1, 1))
kappas("worse than chance", c(1, 2, 1, 2, 1), c(2, 1, 2, 1, 1))
kappas("alike", c(1, 2, 1, 2, 1), c(1, 2, 1, 2, 1))
kappas("constant", c(1, 1, 1), c(1, 1, 1))
keep("phi", list(a = row(as.numeric(one > 2)), b = row(as.numeric(other > 2))),
     list(phi = psych::phi(table(one > 2, other > 2), digits = 15)))

ratings <- rbind(c(1, 2, 3, NA), c(2, 2, 2, 3), c(4, 3, NA, 4), c(1, NA, NA, NA), c(3, 3, 2, 3),
                 c(5, 4, 5, NA), c(1, 1, NA, 2), c(NA, 4, 4, 4), c(2, 1, 3, 2), c(3, NA, 3, NA))
alphas <- function(name, ratings) {
  # By the variances within subjects and over all ratings; on ordinal scales of their ranks, on
  # nominal ones of an indicator for each category.
  of_columns <- function(columns) {
    within <- total <- 0
    for (table in columns) {
      kept <- table[rowSums(!is.na(table)) > 1, , drop = FALSE]
      within <- within + sum(apply(kept, 1, function(x) sum(!is.na(x)) * var(x, na.rm = TRUE)))
      total <- total + var(kept[!is.na(kept)]) * sum(!is.na(kept))
    }
    1 - within / total
  }
  paired <- ratings
  paired[rowSums(!is.na(ratings)) < 2, ] <- NA
  ranks <- paired
  ranks[!is.na(paired)] <- rank(paired[!is.na(paired)])
  indicators <- lapply(sort(unique(c(paired))), function(value) (paired == value) * 1)
  # Fleiss: the shares of a subject, and each subject once.
  shares <- sapply(indicators, rowMeans, na.rm = TRUE)[rowSums(!is.na(paired)) > 0, ]
  n_each <- rowSums(!is.na(paired))[rowSums(!is.na(paired)) > 0]
  equal <- 1 - rowSums(shares * (1 - shares)) * n_each / (n_each - 1)
  chance <- sum(colMeans(shares)^2)
  keep(paste("alpha", name), list(ratings = rows_of(ratings)),
       list(nominal = of_columns(indicators), interval = of_columns(list(paired)),
            ordinal = of_columns(list(ranks)), fleiss = (mean(equal) - chance) / (1 - chance)))
}
alphas("missing", ratings)
alphas("whole", ratings[c(2, 5, 9, 2, 5), ] + diag(5)[, 1:4])
alphas("worse than chance", rbind(c(1, 2), c(2, 1), c(1, 2), c(2, 3)))

iccs <- list(
  whole = cbind(one, other, c(2, 2, 3, 4, 2, 1, 4, 1, 3, 3, 4, 4, 2, 2, 4, 2)),
  biased = cbind(one, other + 2), negative = rbind(c(1, 3), c(2, 2), c(3, 1), c(1, 2)),
  two = rbind(c(1, 2), c(4, 4)))
for (name in names(iccs)) {
  found <- psych::ICC(unname(iccs[[name]]), lmer = FALSE, missing = FALSE)$results
  keep(paste("icc", name), list(ratings = rows_of(unname(iccs[[name]]))),
       list(icc = found["Single_random_raters", "ICC"]))
}

# --- Means of labels, with and without predictions -------------------------------------------------
labels <- c(12.1, 14.3, 9.8, 11.5, 13.2, 10.4, 15.0, 12.7, 11.1)
student <- t.test(labels)
keep("student", list(labels = row(labels)),
     list(value = mean(labels), ends = student$conf.int[1:2]))
yes <- c(1, 0, 1, 1, 0, 1, 1, 1, 0, 1, 1, 0, 1)
whole <- survey::svydesign(ids = ~1, weights = rep(1, length(yes)), data = data.frame(yes = yes))
share <- survey::svyciprop(~yes, whole, method = "beta")
keep("effective number", list(labels = row(yes)),
     list(value = as.numeric(share), ends = as.numeric(attr(share, "ci"))))
for (name in c("none", "all")) {
  own <- if (name == "all") rep(1, 9) else rep(0, 9)
  keep(paste("equal labels", name), list(labels = row(own)),
       list(ends = binom.test(sum(own), 9)$conf.int[1:2]))
}
# Predictions at full weight: the error of the difference, and that of the rest's mean.
predicted <- c(11.8, 14.0, 10.5, 11.0, 13.9, 10.1, 14.2, 12.9, 11.8)
rest <- c(10.2, 13.3, 12.8, 9.9, 14.4, 11.6, 12.2, 13.0, 10.7, 12.5, 11.9, 13.6)
found <- t.test(labels - predicted, -rest)
keep("full weight", list(labels = row(labels), predicted = row(predicted), others = row(rest)),
     list(value = unname(found$estimate[1] - found$estimate[2]),
          of_labels = var(labels - predicted) / length(labels), of_rest = var(rest) / length(rest)))
second <- c(10.9, 12.2, 9.1, 10.0, 12.8, 9.7)
found <- t.test(labels, second)
keep("difference by welch", list(a = row(labels), b = row(second)),
     list(value = unname(found$estimate[1] - found$estimate[2]), ends = found$conf.int[1:2],
          p = found$p.value))
sampled <- data.frame(y = c(labels, second), group = rep(1:2, c(9, 6)),
                      weight = rep(c(40 / 9, 75 / 6), c(9, 6)))
found <- survey::svymean(~y, survey::svydesign(ids = ~1, strata = ~group, weights = ~weight,
                                               data = sampled))
keep("stratified", list(a = row(labels), b = row(second), n_a = 40, n_b = 75),
     list(value = as.numeric(found), error = as.numeric(survey::SE(found))))

# --- Groups of vectors, detectors ------------------------------------------------------------------
points <- rbind(c(1, 0.1, 0), c(0.9, 0.2, 0.1), c(0.8, 0, 0.3), c(0.1, 1, 0), c(0, 0.9, 0.3),
                c(0.2, 0.1, 1), c(0, 0.3, 0.9), c(0.5, 0.6, 0.1), c(0.3, 0.2, 0.8))
points <- points / sqrt(rowSums(points^2))
ward <- cutree(hclust(dist(points), "ward.D2"), 3)
average <- cutree(hclust(as.dist(1 - points %*% t(points)), "average"), h = 0.35)
keep("groups", list(points = rows_of(points)),
     list(ward = ward, average = average))
scores <- c(0.2, 0.5, 0.5, 0.7, 0.9, 0.4, 0.8, 0.5, 0.3, 0.1, 0.4, 0.6, 0.2, 0.5)
is_human <- c(0, 0, 1, 1, 1, 0, 1, 1, 0, 0, 1, 1, 0, 0)
# Platt's curve: a logistic regression on his smoothed targets.
targets <- ifelse(is_human == 1, (sum(is_human) + 1) / (sum(is_human) + 2),
                  1 / (sum(1 - is_human) + 2))
curve <- glm(targets ~ scores, family = quasibinomial, control = glm.control(epsilon = 1e-14))
keep("detector", list(scores = row(scores), is_human = row(is_human)),
     list(auc = as.numeric(pROC::auc(is_human, scores, direction = "<", levels = c(0, 1))),
          slope = unname(coef(curve)[2]), intercept = unname(coef(curve)[1])))

# --- The file --------------------------------------------------------------------------------------
versions <- c(R = paste(R.version$major, R.version$minor, sep = "."),
              sapply(packages, function(name) as.character(packageVersion(name))))
path <- commandArgs(trailingOnly = TRUE)
if (length(path) == 0) {
  script <- sub("--file=", "", grep("--file=", commandArgs(), value = TRUE))
  path <- file.path(dirname(script), "values.json")
}
# A line for the data of each case, and one for its values.
as_text <- function(x) jsonlite::toJSON(x, digits = NA, auto_unbox = TRUE, na = "null")
lines <- sapply(names(cases), function(name) sprintf(
  '%s: {\n"data": %s,\n"result": %s}', as_text(name), as_text(cases[[name]]$data),
  as_text(cases[[name]]$result)))
writeLines(c(sprintf('{"versions": %s,', as_text(as.list(versions))), '"cases": {',
             paste(lines, collapse = ",\n"), "}}"), path[1])
