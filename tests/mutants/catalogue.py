"""Every mutant there is: one file for each area."""

from tests.mutants.cayu import CAYU
from tests.mutants.mutant import Mutant

MUTANTS: tuple[Mutant, ...] = (*CAYU,)
