import argparse


class Options:
    def __init__(self):
        self.parser = argparse.ArgumentParser(description="Bake bread")
        self._add_oven()
        self._add_dough(self.parser.add_argument_group("dough", "What goes in"))

    def _add_oven(self):
        self.parser.add_argument("--heat", type=int, default=220)

    @staticmethod
    def _add_dough(group):
        group.add_argument("--flour", choices=("rye", "wheat"), default="rye")
        group.add_argument("--salt", type=float, default=0.02)

    def parse(self, words=None):
        return self.parser.parse_args(words)


class Training(Options):
    def __init__(self):
        super().__init__()
        self.parser.add_argument("--pupils", type=int, default=1)


if __name__ == "__main__":
    print(Training().parse())
