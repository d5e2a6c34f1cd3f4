"""What the package is: closed, without keys, and blind to which store stands below it."""

import ast
import sys
from pathlib import Path

import pytest

import reconciler.pauses
from reconciler.pauses import (
    ConditionalWriteConsumption,
    InMemoryConsumption,
    PauseTokenService,
    TokenIssuanceLedger,
    hash_scope,
)
from tests.contract.pause_tokens.kit import JwsSigner, Rig

PACKAGE = Path(reconciler.pauses.__file__).parent


def imported_roots(path: Path) -> set[str]:
    """Return the top-level names that a file imports absolutely."""
    roots: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            roots |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            roots.add(str(node.module).split(".")[0])
    return roots


@pytest.mark.statement("S1")
def test_one_package_owns_the_whole_life_of_a_pause() -> None:
    modules = {path.stem for path in PACKAGE.glob("*.py")}

    assert modules >= {
        "registrations", "binding", "tokens", "consumption", "ledger", "issuance", "drain",
        "checkpoints", "turnstate", "threads", "pausing", "resume", "capability", "factory", "errors",
    }  # fmt: skip
    assert all(hasattr(reconciler.pauses, name) for name in reconciler.pauses.__all__)


@pytest.mark.statement("S2")
@pytest.mark.parametrize("path", sorted(PACKAGE.glob("*.py")), ids=lambda path: path.stem)
def test_no_module_touches_keys(path: Path) -> None:
    assert not imported_roots(path) & {"hmac", "secrets", "jwt", "cryptography", "ssl"}
    assert not {"hmac", "secrets"} & {
        node.attr for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)
    }


@pytest.mark.statement("S2")
async def test_authenticity_comes_from_the_signer_alone(rig: Rig) -> None:
    event = await rig.ask()

    rig.service.authenticate(event.pause.envelope)

    assert (rig.signer.minted, rig.signer.verified) == (1, 1)


@pytest.mark.statement("S3")
@pytest.mark.parametrize("path", sorted(PACKAGE.glob("*.py")), ids=lambda path: path.stem)
def test_every_import_is_of_the_package_itself_the_standard_library_or_pydantic(path: Path) -> None:
    assert imported_roots(path) <= set(sys.stdlib_module_names) | {"pydantic"}


@pytest.mark.statement("S4")
def test_a_scope_is_read_by_its_attributes_whatever_its_type() -> None:
    class Tenancy:
        tenant_id = "t1"
        sub_tenant_id = "s1"

    class Other:
        def __getattr__(self, name: str) -> str | None:
            return {"tenant_id": "t1", "sub_tenant_id": "s1"}.get(name)

    assert hash_scope(Tenancy()) == hash_scope(Other()) == "ba3ea6968821cad4"


@pytest.mark.statement("S5")
def test_the_service_uses_a_ledger_and_a_store_alike_and_only_the_ledger_knows_more() -> None:
    ledger = TokenIssuanceLedger(maximum_ttl_seconds=60)
    operated_only = ("record_issuance", "drain_proof", "record_retirement_horizon", "outstanding")

    assert PauseTokenService(JwsSigner(), ledger=ledger).consumption is ledger
    assert all(hasattr(ledger, verb) for verb in operated_only)
    for consumption in (InMemoryConsumption(), ConditionalWriteConsumption):
        assert not any(hasattr(consumption, verb) for verb in operated_only)


@pytest.mark.statement("S5")
def test_nothing_above_consumption_asks_which_kind_it_has() -> None:
    for module in ("tokens", "resume", "pausing", "capability"):
        text = (PACKAGE / f"{module}.py").read_text()
        assert "InMemoryConsumption" not in text
        assert "TokenIssuanceLedger" not in text
