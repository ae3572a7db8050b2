"""Run as ``python -m covshift_bench``."""

from covshift_bench.command import main

if __name__ == "__main__":
    main()
