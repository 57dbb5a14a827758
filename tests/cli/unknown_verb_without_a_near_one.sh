# A verb like no other.
n2ce frobnicate
