# "n2ce help VERB" says all about one verb.
n2ce help study gaussian
