# --bmi without dimensions says what it takes.
n2ce mi --bmi rows.csv 1
