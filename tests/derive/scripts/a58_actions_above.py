import argparse


class Loud(argparse._StoreTrueAction):
    def __call__(self, parser, namespace, values, option_string=None):
        print("LOUD")
        super().__call__(parser, namespace, values, option_string)


class Gather(argparse._AppendAction):
    pass


class Checked(argparse.Action):
    def __call__(self, parser, namespace, values, option_string=None):
        if not values.isidentifier():
            parser.error("that is not a name")
        setattr(namespace, self.dest, values)


parser = argparse.ArgumentParser()
parser.add_argument("--loud", action=Loud)
parser.add_argument("--word", action=Gather, default=None)
parser.add_argument("--name", action=Checked)
parser.parse_args()
