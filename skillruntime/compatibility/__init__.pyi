from skillruntime.compatibility.changelog import release_notes as release_notes
from skillruntime.compatibility.comparison import NO_COUNTEREXAMPLE as NO_COUNTEREXAMPLE
from skillruntime.compatibility.comparison import Bump as Bump
from skillruntime.compatibility.comparison import Change as Change
from skillruntime.compatibility.comparison import Verdict as Verdict
from skillruntime.compatibility.comparison import compare as compare
from skillruntime.compatibility.migration_proof import (
    prove_migrations as prove_migrations,
)
from skillruntime.compatibility.migration_suggestion import Suggestion as Suggestion
from skillruntime.compatibility.migration_suggestion import (
    suggest_migration as suggest_migration,
)
from skillruntime.compatibility.old_calls import OldCall as OldCall
from skillruntime.compatibility.old_calls import OldCalls as OldCalls
from skillruntime.compatibility.old_calls import try_old_calls as try_old_calls
