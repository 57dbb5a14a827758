# mi takes three words, no fourth.
n2ce mi --bmi rows.csv 1 2 3
