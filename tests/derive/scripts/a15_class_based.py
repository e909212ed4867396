#!/usr/bin/env python3
import argparse


class Tool:
    DEFAULT = 8080

    def __init__(self):
        self.parser = argparse.ArgumentParser(description="Serve files")
        self._add_arguments()

    def _add_arguments(self):
        self.parser.add_argument("directory", nargs="?", default=".")
        self.parser.add_argument("--port", type=int, default=self.DEFAULT)
        self.parser.add_argument("--bind", default="127.0.0.1")

    def run(self):
        args = self.parser.parse_args()
        print(args)


if __name__ == "__main__":
    Tool().run()
