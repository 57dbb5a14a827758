# A letter belongs to one option, and an option has one letter, over all verbs and what they share.
n2ce help | sed -n '/^Verbs/,/^$/s/^  \([a-z]* *[a-z]*\)   .*/\1/p' | grep -vE '^(help|version|completion|man)' |
    while read -r verb; do
        # shellcheck disable=SC2086
        n2ce help $verb | sed -n 's/^  -\(.\), --\([A-Za-z-]*\).*/\1 \2/p; s/^      --\([a-z-]*\).*/. \1/p'
    done | sort -u >pairs
# -n is a numerator where there is one, else a number, as of head
awk '$1 != "." && $1 != "n" && $1 in name { print "-" $1 " is --" name[$1] " and --" $2 } { name[$1] = $2 }' pairs
awk '$2 in letter { print "--" $2 " has -" letter[$2] " and -" $1 } { letter[$2] = $1 }' pairs
awk '$1 != "."' pairs
