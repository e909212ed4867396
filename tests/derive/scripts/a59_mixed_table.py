import argparse

FLAGS = [("k", "keep"), "quick", ("q", "quiet")]

parser = argparse.ArgumentParser()
for flag in FLAGS:
    if isinstance(flag, tuple):
        short, long = flag
        parser.add_argument(f"-{short}", f"--{long}", action="store_true")
    elif isinstance(flag, str):
        parser.add_argument("--" + flag, action="store_true")
    else:
        raise TypeError(flag)
parser.parse_args()
