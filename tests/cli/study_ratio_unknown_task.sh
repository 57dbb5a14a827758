# A problem that does not exist: the nearest one, and the groups.
n2ce study ratio --tasks sanity,swis-roll
