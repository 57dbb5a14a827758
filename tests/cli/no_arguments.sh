# Without a verb there is nothing to do: bad usage.
n2ce
