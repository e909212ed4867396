#!/usr/bin/env python3
import argparse


class KeyValue(argparse.Action):
    def __call__(self, parser, namespace, values, option_string=None):
        result = getattr(namespace, self.dest) or {}
        for each in values:
            key, _, value = each.partition("=")
            result[key] = value
        setattr(namespace, self.dest, result)


parser = argparse.ArgumentParser()
parser.add_argument("--set", nargs="*", action=KeyValue, metavar="KEY=VALUE")
parser.add_argument("--plain")
parser.parse_args()
