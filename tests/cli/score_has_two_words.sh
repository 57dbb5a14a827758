# score takes two words, no third.
n2ce score model rows.csv more.csv
