import sys

number = sys.argv[1]
if number == "all":
    print("everything")
else:
    print(int(number))
