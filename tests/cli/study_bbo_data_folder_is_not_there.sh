# The folder of the data does not exist, or has no folder of the task.
n2ce study bbo --tasks tfbind8 --data nowhere
