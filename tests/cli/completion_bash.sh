# What bash offers after some beginnings of a line.
n2ce completion bash >script
command -v bash >/dev/null || exit 0
bash -n script || exit 1
mkdir folder
cat >check <<'BASH'
source ./script
# offers WANTED WORD...: with the cursor at the end of the last word.
offers() {
    local wanted=$1
    shift
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    _n2ce
    [ "${COMPREPLY[*]}" = "$wanted" ] || echo "after \"$*\": ${COMPREPLY[*]}, not $wanted"
}
offers "fit score info divergence mi test optimize detect train sample distill compare study bench help version completion man" n2ce ""
offers "score study" n2ce s
offers "draw gaussian ratio bbo anomaly" n2ce study ""
offers "step scale svgd" n2ce bench s
offers "--iterations" n2ce bench svgd --it
offers "--plan" n2ce bench --pl
offers "study" n2ce help st
offers "bash zsh" n2ce completion ""
offers "--runs" n2ce study gaussian --ru
offers "--step-size" n2ce study gaussian --steps 5 --step-
offers "n2ce nwj neg-reweight" n2ce study gaussian --families ""
offers "folder" n2ce study gaussian --report f
offers "folder" n2ce study gaussian -r f
offers "--num" n2ce fit --nu
offers "n2ce nce nwj neg-reweight" n2ce mi --method n
offers "folder" n2ce score fo
offers "" n2ce nonsense x
complete -p n2ce
BASH
bash check >said
[ "$(cat said)" = "complete -F _n2ce n2ce" ] || cat said
