# Options of rows are refused where pictures are judged.
printf '\0\0\10\3\0\0\0\144\0\0\0\34\0\0\0\34' >normal.idx
head -c 78400 /dev/zero >>normal.idx
n2ce detect --normal normal.idx normal.idx --columns 1
