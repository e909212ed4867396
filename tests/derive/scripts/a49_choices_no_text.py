import argparse


def main():
    parser = argparse.ArgumentParser(description="Turn pages.")
    parser.add_argument("--reverse", default=True, choices=[True, False])
    parser.add_argument("--columns", choices=[1, 2, 3], default=1)
    parser.add_argument("--rows", type=int, choices=[1, 2, 3], default=1)
    print(parser.parse_args())


if __name__ == "__main__":
    main()
