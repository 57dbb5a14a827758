# Help, manual page and both completions know every option that the JSON or the help names.
n2ce study gaussian --dim 1 --n 2 --runs 1 --steps 1 --json >answer.json
n2ce completion bash >bash.txt
n2ce completion zsh >zsh.txt
for verb in 'study gaussian' 'study bbo' 'study images' fit score info divergence mi test train sample distill compare; do
    # shellcheck disable=SC2086
    n2ce help $verb >help.txt
    # shellcheck disable=SC2086
    n2ce man $verb | sed 's/\\-/-/g' >man.txt
    {
        [ "$verb" != 'study gaussian' ] ||
            sed -n 's/^  "options": {\(.*\)},$/\1/p' answer.json | grep -o '"[a-z-]*": ' | tr -d '": '
        sed -n 's/^  -., --\([a-zM-]*\).*/\1/p; s/^      --\([a-z-]*\).*/\1/p' help.txt
    } | sort -u >options.txt
    echo "$verb: $(wc -l <options.txt | tr -d ' ')"
    while read -r option; do
        grep -qE "^  (-., |    )--$option( |\$)" help.txt || echo "help lacks --$option"
        grep -qE "^\.B --$option(,| |\$)" man.txt || echo "the manual lacks --$option"
        grep -qE "[\" ]--$option " bash.txt || echo "bash completion lacks --$option"
        grep -qF "'--${option}[" zsh.txt || echo "zsh completion lacks --$option"
    done <options.txt
done
