# A file of pictures that ends too soon.
printf '\0\0\10\3\0\0\0\144\0\0\0\34\0\0\0\34' >normal.idx
head -c 78399 /dev/zero >>normal.idx
n2ce detect --normal normal.idx normal.idx
