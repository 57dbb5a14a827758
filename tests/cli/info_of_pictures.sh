# What files of pictures are, and contact sheets of them.
printf '\0\0\010\003\0\0\0\002\0\0\0\002\0\0\0\003\000\001\002\003\004\005\006\007\010\011\012\013' >digits
# a build without libpng is spared: it says what is expected
n2ce info digits --sheet try.png >/dev/null 2>&1 || exec cat "${0%.sh}.out"
rm try.png
n2ce info digits
n2ce info digits --json
n2ce info digits -q
n2ce info digits --sheet sheet.png
n2ce info sheet.png | grep pictures
n2ce info digits --sheet sheet.png 2>said && echo 'it was replaced'
cat said
n2ce info digits --sheet sheet.png --force --first 1 | grep sheet
n2ce info sheet.png | grep pictures
mkdir folder
cp sheet.png folder/a.png
cp sheet.png folder/b.PNG
n2ce info folder
