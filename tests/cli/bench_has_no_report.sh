# A task without a report says so before it works.
n2ce bench step --report r
