"""Every mutant there is: one file for each area."""

from tests.mutants.cayu import CAYU
from tests.mutants.mutant import Mutant
from tests.mutants.pause_tokens import PAUSE_TOKENS

MUTANTS: tuple[Mutant, ...] = (*CAYU, *PAUSE_TOKENS)
