# "version" is a verb without a manual page of its own: the message may not deny that it exists.
n2ce man version 2>message
code=$?
if [ "$code" -ne 0 ] && grep -q 'there is no verb "version"' message; then cat message; fi
