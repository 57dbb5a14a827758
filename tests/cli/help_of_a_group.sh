# "n2ce help study" lists the studies.
n2ce help study
