# A task with data files, and nobody said where they are: bad usage.
unset N2CE_DATA
n2ce study bbo --tasks all
