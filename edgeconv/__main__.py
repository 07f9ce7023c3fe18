"""`python -m edgeconv`: the command line."""

from edgeconv.cli import main

if __name__ == "__main__":
    main()
