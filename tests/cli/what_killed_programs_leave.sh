# Files that grow too long, processes that are killed, pipes that nobody writes to, files that shrink.
normals() { awk "$@" -f "${0%/*}/normals.awk"; }
normals -v n=120 -v d=2 -v seed=1 -v mean=1 -v header=1 >a.csv
normals -v n=100 -v d=2 -v seed=2 -v header=1 >b.csv
fit='n2ce fit -n a.csv -d b.csv -o model --critic quadratic -q'
# A limit on the length of files is an error of writing, not the end of the program.
(ulimit -f 1 && $fit >/dev/null)
echo "exit $?, $(ls model* 2>/dev/null | wc -l) files"
# What a process that was killed left behind goes with the next one that writes the same file.
n2ce fit -n a.csv -d b.csv -o model --critic net --steps 1e9 --rate 1e-9 -q &
sleep 1
kill -9 $!
wait $! 2>/dev/null
: >model.4711-0
$fit >/dev/null
echo "exit $?, $(ls model*)"
# Ctrl-C while nobody writes to a pipe.
mkfifo pipe
for verb in 'info pipe' 'score model pipe' 'divergence -n pipe -d a.csv'; do
    # shellcheck disable=SC2086
    timeout 20 n2ce $verb -q &
    sleep 0.5
    pkill -INT -P $! 2>/dev/null || kill -INT $!
    wait $!
    echo "$verb: exit $?"
done
# The same while who has it open says nothing.
sleep 20 >pipe &
holder=$!
timeout 20 n2ce info pipe -q &
sleep 0.5
pkill -INT -P $! 2>/dev/null || kill -INT $!
wait $!
echo "info of a silent pipe: exit $?"
kill $holder
wait $holder 2>/dev/null
# Names cannot tell the terminal what to do.
printf '\033[31mred\n1\nx\ny\nz\n' >red.csv
n2ce divergence -n red.csv -d red.csv 2>&1 | grep -c "$(printf '\033')"
# A file that shrinks while it is read: 40 million rows, none of them on the disk.
{
    printf '\223NUMPY\001\000\166\000'
    printf '%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (40000000, 2), }"
} >big.npy
truncate -s 320000128 big.npy
n2ce score model big.npy --columns 0,1 -o scores.csv -q 2>said &
sleep 1
truncate -s 4096 big.npy
wait $!
echo "exit $?, $(ls scores* 2>/dev/null | wc -l) files"
grep -q shorter said || cat said
