# What the study is and takes.
n2ce help study bbo
