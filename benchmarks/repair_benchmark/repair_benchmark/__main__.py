"""``python -m repair_benchmark`` is the command ``repair-benchmark``."""

from repair_benchmark.command import main

main()
