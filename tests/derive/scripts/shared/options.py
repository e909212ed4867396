"""Options that several scripts take."""

import enum


class Form(enum.Enum):
    TABLE = "table"
    LINES = "lines"

    def __str__(self):
        return self.value


def add_output_options(parser, *, default=Form.TABLE):
    group = parser.add_argument_group("output")
    group.add_argument("--form", type=Form, choices=list(Form), default=default)
    group.add_argument("--width", type=int, default=80, help="Columns, %(default)s as a rule")
    return group
