"""``python -m covshift``: the command line, where the folder of its script is not on the path."""

try:
    from covshift.cli import main
except KeyboardInterrupt:
    raise SystemExit(130) from None

if __name__ == "__main__":  # workers import this module under another name
    main()
