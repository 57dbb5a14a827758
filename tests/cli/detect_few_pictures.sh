# What is usual is learnt from a hundred pictures or more.
printf '\0\0\10\3\0\0\0\62\0\0\0\34\0\0\0\34' >few.idx
head -c 39200 /dev/zero >>few.idx
n2ce detect --normal few.idx few.idx
