# The zsh script parses and names the verbs.
n2ce completion zsh >script
head -n 1 script
grep -q "'study gaussian'" script || echo "no study gaussian"
command -v zsh >/dev/null || exit 0
zsh -n script
