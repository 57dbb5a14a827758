# Verbs of the program itself, and the word before a study's name, are on the program's page.
for verb in version help completion man study; do n2ce man "$verb" | head -n 1; done
