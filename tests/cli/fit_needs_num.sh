# fit without anything names the first file that is missing.
n2ce fit
