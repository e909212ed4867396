def main():
    import argparse

    from textwrap import dedent

    parser = argparse.ArgumentParser(description=dedent("""\
        Count the birds.

        Only those that sit still."""))
    parser.add_argument("tree")
    parser.add_argument("--birds", type=int)
    if (args := parser.parse_args()).birds:
        print(args)


if __name__ == "__main__":
    raise SystemExit(main())
