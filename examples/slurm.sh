#!/bin/sh
# A fit on 4 machines of 16 ranks each, 2 threads a rank:   sbatch examples/slurm.sh
# The result is that of one process, byte by byte. When the time is up Slurm sends SIGTERM: all ranks stop after the
# same step; verbs with a checkpoint (optimize, train, distill) go on with --resume, on any number of ranks.
#SBATCH --job-name=n2ce
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=16
#SBATCH --cpus-per-task=2
#SBATCH --time=01:00:00
#SBATCH --signal=TERM@60
set -eu
DATA=${DATA:-.}
srun --mpi=pmix n2ce fit --num "$DATA/num.csv" --den "$DATA/den.csv" -o model.safetensors --force
srun --mpi=pmix n2ce score model.safetensors "$DATA/rows.csv" -o scores.txt --force
