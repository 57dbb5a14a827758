# The version, in three spellings.
n2ce version && n2ce --version && n2ce -V
