import sys


def bake(cake):
    print("bake", cake)


def eat(cake):
    print("eat", cake)


ACTIONS = {"bake": bake, "eat": eat}

if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ACTIONS:
        print(f"usage: s15_table_of_functions.py [{'|'.join(ACTIONS)}] CAKE")
        sys.exit(1)
    ACTIONS[sys.argv[1]](sys.argv[2])
