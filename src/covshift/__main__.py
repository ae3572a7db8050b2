"""``python -m covshift``: the command line, where the folder of its script is not on the path."""

from covshift.cli import main

if __name__ == "__main__":  # workers import this module under another name
    main()
