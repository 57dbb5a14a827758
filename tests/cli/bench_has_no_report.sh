# A task without a page does not know --report.
n2ce bench step --report r
