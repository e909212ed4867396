from skillruntime.derive.command_line import CommandLine as CommandLine
from skillruntime.derive.command_line import to_argv as to_argv
from skillruntime.derive.derivation import Derivation as Derivation
from skillruntime.derive.derivation import derive as derive
from skillruntime.derive.proof import Tried as Tried
