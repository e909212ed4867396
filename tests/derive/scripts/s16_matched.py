import sys

match sys.argv[1:]:
    case ["measure", path]:
        print("measure", path)
    case ["compare", left, right]:
        print("compare", left, right)
    case _:
        sys.exit("usage: measure PATH | compare LEFT RIGHT")
