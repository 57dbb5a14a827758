# The default method: a number near the truth, with its interval and the error of its log ratio.
n2ce study ratio --tasks sanity-1d --methods n2ce --n 200 --seeds 1 --time-limit 3 --json |
    sed -n 's/.*"truth": 0.5, "estimate": \([^,]*\), "lo": \([^,]*\), "hi": \([^,]*\), .*_mse": \([^,]*\),.*/\1 \2 \3 \4/p' |
    awk '{ print ($1 > 0.2 && $1 < 0.9), ($2 < $1 && $1 < $3), ($4 >= 0 && $4 < 1) }'
