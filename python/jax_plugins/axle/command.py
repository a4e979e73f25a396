"""The command `axle`, which the wheel has beside the plugin."""

import os
import pathlib
import sys

COMMAND = pathlib.Path(__file__).resolve().parent / "axle"


def main():
    os.execv(COMMAND, ["axle", *sys.argv[1:]])
