# Pictures to judge have the size of the normal ones.
printf '\0\0\10\3\0\0\0\144\0\0\0\34\0\0\0\34' >normal.idx
head -c 78400 /dev/zero >>normal.idx
printf '\0\0\10\3\0\0\0\2\0\0\0\24\0\0\0\24' >new.idx
head -c 800 /dev/zero >>new.idx
n2ce detect --normal normal.idx new.idx
