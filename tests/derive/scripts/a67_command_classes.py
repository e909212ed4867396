import argparse


class Command:
    name = ""
    text = ""

    def add_arguments(self, parser):
        parser.add_argument("--verbose", action="store_true")

    def register(self, commands):
        parser = commands.add_parser(self.name, help=self.text)
        self.add_arguments(parser)
        parser.set_defaults(run=self.run)

    def run(self, args):
        raise NotImplementedError


class Plant(Command):
    name = "plant"
    text = "Put into the ground"

    def add_arguments(self, parser):
        super().add_arguments(parser)
        parser.add_argument("seed")
        parser.add_argument("--depth", type=float, default=2.5)


class Water(Command):
    name = "water"
    text = "Give water"

    def add_arguments(self, parser):
        parser.add_argument("--litres", type=int, required=True)


def main():
    parser = argparse.ArgumentParser(prog="garden")
    commands = parser.add_subparsers(dest="command")
    commands.required = True
    for kind in (Plant, Water):
        kind().register(commands)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
