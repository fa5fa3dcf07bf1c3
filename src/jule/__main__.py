"""`python -m jule` and `torchrun -m jule` are the `jule` command."""

from jule.cli import main

if __name__ == "__main__":
    main()
