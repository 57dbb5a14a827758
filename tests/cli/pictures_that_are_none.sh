# Cut short, damaged, hostile, empty: a sentence and exit 3; nothing is written.
say() {
    n2ce info "$1" --sheet never.png 2>&1 | cut -c 1-60
    n2ce info "$1" >/dev/null 2>&1 || echo "exit $?"
}
printf '\0\0\010\003\0\0\0\002\0\0\0\002\0\0\0\003\000\001\002' >short
printf '\0\0\010\003\377\377\377\377\377\377\377\377\377\377\377\377' >huge
printf '\0\0\015\003\0\0\0\001\0\0\0\001\0\0\0\001\000\000\000\000' >floats
printf '\0\0\010\001\0\0\0\001\003' >labels
printf '\211PNG\r\n\032\n' >head.png
printf '\211PNG\r\n\032\n\0\0\0\015IHDR\177\377\377\377\177\377\377\377\010\002\0\0\0\0\0\0\0' >bomb.png
printf '\037\213\010\0\0\0\0\0\0\003\1\2\3' >packed
mkdir nothing
printf '\0\0\010\003\0\0\0\001\0\0\0\001\0\0\0\001\001' >digits
# a build without libpng is spared: it says what is expected
n2ce info digits --sheet try.png >/dev/null 2>&1 || exec cat "${0%.sh}.out"
rm try.png
for file in short huge floats labels head.png bomb.png packed nothing; do say $file; done
[ ! -e never.png ]
