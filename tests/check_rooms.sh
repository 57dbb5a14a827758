#!/bin/sh
# Usage: check_rooms.sh ROOT [BUILD]
#
# Checks how the sources of ROOT hang together and what the library must not call. With BUILD, the
# folder of a finished build, it asks the object files too: a declaration written by hand, or a header
# of the one room that declares what another defines, does not show in includes.
# Inside a room a header is included by its bare name ("ctx.h"), across rooms with the room
# ("base/ctx.h"). Every room may include the public headers and system headers.
set -eu

# room: rooms whose headers it may include, or single headers of a room
rooms='
base:
comm:      base
io:        base comm
objective: base
report:    base
design:    base comm io
image:     base io
engine:     base comm
engine/ops: base engine
rewrite:   base engine
ref:       base engine objective
cpu:       base engine objective ref
cuda:      base comm engine objective
cuda/runtime:   base engine cuda cuda/kernels/job.h cuda/kernels/jobs.h cuda/fused_mlp/fused_mlp.h cuda/library/library.h cuda/library/ranks.h cuda/library/nccl.h cuda/wide/wide.h
cuda/kernels:   base engine objective cuda/runtime cuda/fused_mlp/fused_mlp.h cuda/fused_mlp/pack_weights.h cuda/library/library.h cuda/wide/wide.h cuda/wide/pass.h cuda/wide/sums.h cuda/wide/few.h cuda/wide/norm.h cuda/wide/attention.h
cuda/fused_mlp: base engine cuda/runtime cuda/kernels
cuda/library:   base comm engine cuda cuda/runtime cuda/kernels
cuda/wide:      base engine cuda/runtime cuda/kernels
nn:        base engine rewrite io
train:     base comm engine rewrite io cpu cuda nn
sampler:   base engine rewrite nn
model:     base engine rewrite nn objective sampler
ratio:     base comm io objective engine rewrite nn train model
metric:    base io image engine rewrite nn train
lebm:      base comm io image engine rewrite nn train objective sampler model metric detect/calibration.h
diffusion: base comm io image engine rewrite nn train objective model metric
detect:    base comm io objective engine rewrite nn train model ratio
optimize:  base comm io design engine rewrite nn train objective sampler model ratio
task:      base comm io objective report engine rewrite ref cpu cuda nn train sampler model ratio image metric lebm diffusion design detect optimize
study:     base comm io objective report engine rewrite ref cpu cuda nn train sampler model ratio image metric lebm diffusion design detect optimize task
api:       base io engine rewrite nn train sampler image design detect optimize task study
cli:
'

# The library, src/, must not call these.
forbidden='exit abort printf puts fprintf perror rand srand'

root=$1
[ -d "$root/src" ] || {
    echo "check_rooms.sh: $root has no folder src."
    exit 2
}
list=$(mktemp)
trap 'rm -f "$list"' EXIT
cd "$root"
find src cli -type f \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' \) 2>/dev/null |
    LC_ALL=C sort >"$list"

ROOMS=$rooms FORBIDDEN=$forbidden LC_ALL=C awk '
function violation(text) {
    print file ":" line_number ": " text
    violations++
}

# The line without comments, and with empty strings and characters. Knows block comments that
# span lines.
function strip(line,    code, token, end) {
    code = ""
    while (1) {
        if (in_comment) {
            if (!(end = index(line, "*/"))) return code
            line = substr(line, end + 2)
            in_comment = 0
        }
        if (!match(line, /"([^"\\]|\\.)*"|\047([^\047\\]|\\.)*\047|\/\/.*|\/\*/)) return code line
        token = substr(line, RSTART, 2)
        code = code substr(line, 1, RSTART - 1)
        line = substr(line, RSTART + RLENGTH)
        if (token == "/*") in_comment = 1
        else if (token != "//") code = code "\"\""
    }
}

function check_include(line,    name, owner) {
    includes++
    name = line
    sub(/^[ \t]*#[ \t]*include[ \t]*/, "", name)
    if (name ~ /^</) {
        name = substr(name, 2, index(name, ">") - 2)
        if (("src/" name) in files || ((folder "/" name) in files))
            violation("<" name "> is ours: include it with quotes")
        return
    }
    if (name !~ /^"[^"]*"/) {
        violation("an include must name its file")
        return
    }
    sub(/^"/, "", name)
    sub(/".*/, "", name)
    if (name == "n2ce.h" || name == "n2ce_engine.h" || ((folder "/" name) in files)) return
    owner = name
    sub(/\/[^\/]*$/, "", owner)
    if (!(("src/" name) in files))
        violation("\"" name "\" is neither in this room nor ROOM/FILE of another")
    else if (owner == room)
        violation("\"" name "\" is in this room: include it by its bare name")
    else if (!((room, owner) in may) && !((room, name) in may))
        violation("room " room " may not include room " owner ": \"" name "\"")
}

function check_calls(code,    k) {
    for (k = 1; k <= n_forbidden; k++)
        if (code ~ ("(^|[^A-Za-z0-9_])" words[k] "[ \t]*\\("))
            violation("the library may not call " words[k])
    if (code ~ /(^|[^A-Za-z0-9_])time[ \t]*\([ \t]*(NULL|0|nullptr)[ \t]*\)/)
        violation("the library may not call time(NULL)")
}

function check_file(    line, commented) {
    folder = file
    sub(/\/[^\/]*$/, "", folder)
    room = folder
    sub(/^src\//, "", room)
    line_number = in_comment = 0
    if (!(room in known)) violation("room " room " is not in the table of check_rooms.sh")
    while ((getline line < file) > 0) {
        line_number++
        commented = in_comment
        code = strip(line)
        if (!commented && line ~ /^[ \t]*#[ \t]*include/) check_include(line)
        if (file ~ /^src\//) check_calls(code)
    }
    close(file)
}

BEGIN {
    n = split(ENVIRON["ROOMS"], rows, "\n")
    for (i = 1; i <= n; i++) {
        if (!(fields = split(rows[i], word, /[ \t]+/))) continue
        sub(/:$/, "", word[1])
        known[word[1]] = 1
        for (k = 2; k <= fields; k++) may[word[1], word[k]] = 1
    }
    n_forbidden = split(ENVIRON["FORBIDDEN"], words, " ")
}

{ files[$0] = 1; order[++n_files] = $0 }

END {
    for (i = 1; i <= n_files; i++) {
        file = order[i]
        check_file()
        base = file
        sub(/.*\//, "", base)
        line_number = 1
        if (base in seen) violation("the file name occurs twice: " seen[base])
        seen[base] = file
    }
    if (violations) exit 1
    print "rooms: " n_files " files, " includes + 0 " includes, all in order"
}' "$list"

[ $# -gt 1 ] || exit 0

# Objects of the library, NAME.c.o or, of CUDA sources, NAME.o and emulated_NAME.o in a folder of their
# own, and what they define (T, D, ...) or use (U). Weak symbols are inline functions: everybody's.
# A header of engine declares the builders that engine/ops defines: for symbols the two are one room.
# Who may include one header of a room may use what it defines; the header in cuda/ declares n2_cuda_*
# that folders in it define. Objects whose source is gone are left over from an earlier build.
cd "$2"
find . \( -path '*.dir/src/*.c.o' -o -path './cuda/*.o' -o -name 'emulated_*.o' \) -exec nm -A -g {} + |
    ROOMS=$rooms LIST=$list LC_ALL=C awk '
function room_of(object,    name) {
    name = object
    if (sub(/.*\.dir\//, "", name)) {
        sub(/\.o$/, "", name)
        if (!(name in exists)) return ""
        sub(/^src\//, "", name)
        sub(/\/[^\/]*$/, "", name)
    } else {
        sub(/.*\//, "", name)
        sub(/^emulated_/, "", name)
        sub(/\.o$/, ".cu", name)
        name = folder[name]
    }
    sub(/^engine\/.*/, "engine", name)
    return name
}

BEGIN {
    n = split(ENVIRON["ROOMS"], rows, "\n")
    for (i = 1; i <= n; i++) {
        if (!(fields = split(rows[i], word, /[ \t]+/))) continue
        sub(/:$/, "", word[1])
        for (k = 2; k <= fields; k++) {
            sub(/\/[^\/]*\.h$/, "", word[k])
            may[word[1], word[k]] = 1
        }
    }
    while ((getline file < ENVIRON["LIST"]) > 0) {
        exists[file] = 1
        base = room = file
        sub(/.*\//, "", base)
        sub(/^src\//, "", room)
        sub(/\/[^\/]*$/, "", room)
        folder[base] = room
    }
}

{
    object = $1
    sub(/:.*/, "", object)
    room = room_of(object)
    if (room == "") next
    if ($(NF - 1) == "U") used[room, $NF] = object
    else if ($(NF - 1) !~ /[WwVvu]/) home[$NF] = room
}

END {
    for (key in used) {
        split(key, part, SUBSEP)
        if (!(part[2] in home) || home[part[2]] == part[1]) continue
        n_used++
        if ((part[1], home[part[2]]) in may) continue
        if (part[2] ~ /^n2_cuda_/ && (part[1], "cuda") in may) continue
        print used[key] ": room " part[1] " may not use " part[2] " of room " home[part[2]]
        violations++
    }
    if (violations) exit 1
    if (!n_used) {
        print "check_rooms.sh: there are no objects of the library"
        exit 2
    }
    print "symbols: " n_used " of other rooms, all in order"
}'
