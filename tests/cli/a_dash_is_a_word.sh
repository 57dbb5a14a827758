# "-" alone is a word (elsewhere the standard input), not an option without a letter.
n2ce study gaussian -
