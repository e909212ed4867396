import argparse

SWITCHES = {"--all": "Take everything", "--new": "Only what is new"}
VALUES = (("--limit", int, 10), ("--name", str, None))

parser = argparse.ArgumentParser()
for flag, text in SWITCHES.items():
    parser.add_argument(flag, action="store_true", help=text)
for number, (flag, kind, default) in enumerate(VALUES):
    parser.add_argument(flag, type=kind, default=default, help=f"value {number}")
for flag, kind in zip(("--low", "--high"), (int, float)):
    parser.add_argument(flag, type=kind)
for name in ["red", "green"]:
    for part in ("min", "max"):
        parser.add_argument(f"--{name}-{part}", type=int, default=0)
    if name == "red":
        continue
    parser.add_argument(f"--{name}-only", action="store_true")
parser.parse_args()
