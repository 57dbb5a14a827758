# Half a run.
n2ce study gaussian --runs 2.5
