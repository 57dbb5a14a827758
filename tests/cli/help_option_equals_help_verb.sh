# --help and -h print what the verb help prints.
n2ce help >help.txt
n2ce help study gaussian >study.txt
n2ce --help | cmp - help.txt
n2ce -h | cmp - help.txt
n2ce --help study gaussian | cmp - study.txt
n2ce study gaussian --help | cmp - study.txt
n2ce study gaussian --runs 5 -h | cmp - study.txt
