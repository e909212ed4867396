import argparse
import os.path
from pathlib import Path

HERE = Path(__file__).resolve().parent
DATA = Path("data")

parser = argparse.ArgumentParser()
parser.add_argument("--root", type=Path, default=HERE)
parser.add_argument("--table", type=Path, default=DATA / "table.csv")
parser.add_argument("--cache", type=Path, default=Path.home() / ".cache")
parser.add_argument("--out", type=Path, default=DATA.joinpath("out").with_suffix(".txt"))
parser.add_argument("--plain", default=os.path.join("data", "plain.txt"))
parser.add_argument("--known", type=lambda text: Path(text).resolve())
parser.parse_args()
