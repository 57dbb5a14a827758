# Pictures are not judged by one another.
printf '\0\0\10\3\0\0\0\144\0\0\0\34\0\0\0\34' >all.idx
head -c 78400 /dev/zero >>all.idx
n2ce detect all.idx
