import sys


class Oven:
    def __init__(self):
        self.heat = sys.argv[1]

    def run(self):
        print(self.heat)


Oven().run()
