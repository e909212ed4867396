import sys


def option(name, default):
    if name in sys.argv:
        return sys.argv[sys.argv.index(name) + 1]
    return default


page = sys.argv[1]
print(page, option("--ink", "black"), int(option("--copies", "1")))
