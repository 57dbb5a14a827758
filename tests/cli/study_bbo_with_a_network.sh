# A method that learns, on few points; the answer says that it is smaller than in the paper, and is
# the same for one thread and for two.
n2ce study bbo --beside random,top-offline --tasks branin-50 --methods gradient-ascent --scale 32 --seeds 2 --threads 1 >one
n2ce study bbo --beside random,top-offline --tasks branin-50 --methods gradient-ascent --scale 32 --seeds 2 --threads 2 >two
grep -o -e '--scale 32 divides widths and steps by 32' one
strip() { sed 's/ *[0-9.]*$//' "$1"; } # the seconds
[ "$(strip one)" = "$(strip two)" ] || echo "threads matter"
