# The study takes options only.
n2ce study gaussian extra
